"""One message to one recipient."""

from django.conf import settings
from django.db import transaction
from django.http import HttpRequest
from django.utils import timezone
from ninja import Router, Status

from accounts.models import Account, Recipient, Role
from accounts.recipients.add import recipient_for
from accounts.roles import require_touch
from api import leaving
from api.access import SEND, person_of
from api.problems import invalid
from api.routes.rows import all_of, touched
from api.routes.writing import bits_of, one_line, require_hours, require_zone, typed_parts
from api.schemas.base import Leaving
from api.schemas.reminders import DAYS, MessagePlanned, MessageShown, OneMessage, PartGiven
from delivery.models import RunTarget
from delivery.parts import render, thaw, values_of
from delivery.window import Window, days_of
from reminders.single import messages
from reminders.single.messages import Letter

router = Router(tags=["Messages"])


@router.post("", response={200: MessagePlanned, 201: MessageShown}, auth=SEND)
def send_message(request: HttpRequest, body: OneMessage) -> Status[MessagePlanned] | Status[MessageShown]:
    """Send one message to one recipient, inside the delivery hours and the limits of the account.

    Without hours of its own it has those of the installation, in the zone of the recipient's owner. It waits for them,
    and `leaves_at` says when it is expected to leave. Send an Idempotency-Key, so that a repeated request sends nothing
    twice. With `dry_run` nothing is sent, and the answer (200) says what would be.
    """
    if body.dry_run:
        return Status(200, _dry_run(request, body))
    return Status(201, shown(_sent(request, body)))


def _sent(request: HttpRequest, body: OneMessage) -> RunTarget:
    accounts = all_of(Account.objects.defer("credentials", "webhook"), request, body.accounts, "accounts")
    return messages.send(_letter(request, body, accounts), by=person_of(request))


def _dry_run(request: HttpRequest, body: OneMessage) -> MessagePlanned:
    """Do everything, read what it would do, and take it back: so each rule and the forecast are the real ones."""
    started = timezone.now()
    with transaction.atomic():
        target = _sent(request, body)
        planned = _planned(target, known=target.recipient.created_at < started)
        transaction.set_rollback(True)
    return planned


def _planned(target: RunTarget, *, known: bool) -> MessagePlanned:
    to, values = target.recipient, values_of(target.recipient)
    texts = []
    for number, part in enumerate(thaw(target.run.parts)):
        text = render(part.drawn(key=str(target.key), part=number), values)
        texts.append(f"{part.filename} {text}".strip())
    return MessagePlanned(
        recipient=to.pk if known else None,
        address=to.address,
        name=to.name,
        account=target.account_id,
        account_name=target.account.name,
        subject=render(target.run.subject, values),
        texts=texts,
        **_leaving(target).model_dump(),
    )


def shown(target: RunTarget) -> MessageShown:
    """Return the message with when it leaves."""
    return MessageShown(
        id=target.run_id,
        target=target.pk,
        recipient=target.recipient_id,
        account=target.account_id,
        status=target.status,
        **_leaving(target).model_dump(),
    )


def _leaving(target: RunTarget) -> Leaving:
    now = timezone.now()
    found = leaving.of_run(target.run, now=now)
    if found.leaves_at is None or target.not_before <= now or target.not_before < found.leaves_at:
        return found
    return found.model_copy(update={"leaves_at": target.not_before, "waiting_for": "not_before"})


def _letter(request: HttpRequest, body: OneMessage, accounts: list[Account]) -> Letter:
    recipient = _recipient(request, body, accounts)
    days = bits_of(body.days or DAYS)
    zone = body.zone or recipient.owner.zone or timezone.get_default_timezone_name()
    start = settings.WINDOW_START_HOUR if body.start_hour is None else body.start_hour
    end = settings.WINDOW_END_HOUR if body.end_hour is None else body.end_hour
    require_hours(start, end)
    require_zone(zone)
    return Letter(
        accounts=accounts,
        recipient=recipient,
        parts=typed_parts(recipient.owner_id, _parts(body)),
        window=Window(start_hour=start, end_hour=end, days=days_of(days), zone=zone),
        send_days=days,
        subject=one_line(body.subject),
        priority=body.priority,
        not_before=body.not_before,
    )


def _parts(body: OneMessage) -> list[PartGiven]:
    if body.text and body.parts:
        raise invalid("text", "Send either `text` or `parts`.")
    return body.parts or ([PartGiven(text=body.text)] if body.text else [])


def _recipient(request: HttpRequest, body: OneMessage, accounts: list[Account]) -> Recipient:
    """Return the recipient by id, or by address; an address that nobody has is added."""
    if (body.recipient is None) == (body.to is None):
        raise invalid("recipient", "Name the recipient by its id in `recipient`, or by address in `to`.")
    if body.to is None:
        return touched(Recipient.objects.select_related("owner"), request, body.recipient or 0, Role.SEND)
    account = accounts[0]
    require_touch(account, person_of(request), Role.SEND)
    return recipient_for(account.owner, body.to.channel, body.to.address, name=body.to.name)
