"""Sends one address what is due: in one message, at least once, later each time where it fails.

1. Claim, in a transaction: the notices of a message that was not settled, else all that are due, under a new name.
   Each try is counted, and the next one planned, before anything is sent: a worker that dies in between sends the
   same message under the same name again, later each time, and not one after the other.
2. Send, without a transaction and without a database connection.
3. Write down how it ended. An address that took nothing for three days is switched off, and its person is told.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random
from uuid import UUID, uuid4

import structlog
from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from accounts.encryption import UnreadableSecretError
from activity.models import Notification
from activity.notify import tell
from api.hooks.retries import pause_after
from delivery.sessions import calls
from notices import mail
from notices.models import CODE, TEST, Notice, NoticeAddress, Way
from notices.moments import after_quiet
from notices.outside import ask
from notices.outside.ask import Reply
from notices.preferences import rules_of, zone_of
from notices.words import Text, Told, message

log = structlog.get_logger(__name__)

BUSY = timedelta(seconds=180)  # longer than any try: a worker that died gives its address back after this
SWITCHED_OFF_AFTER = timedelta(days=3)
FORGOTTEN_AFTER = timedelta(days=1)  # longer than any pause between two tries
MOST = 200  # notices of one message
ASKED_FOR = (TEST, CODE)  # a person waits for these: they go also in quiet hours, and alone


@dataclass(frozen=True, slots=True)
class Claim:
    """The notices of one message, and the name under which it is sent each time."""

    address: NoticeAddress
    name: UUID
    notices: Sequence[Notice]
    text: Text


def serve(address_id: int, *, rng: Random) -> bool:
    """Send an address that this worker has what is due; return whether a message was taken."""
    try:
        claim = _claim(address_id, now=timezone.now(), rng=rng)
        if claim is None:
            return False
        reply = _send(claim)
        _write_down(address_id, claim, reply, now=timezone.now(), rng=rng)
        return reply.good
    finally:
        NoticeAddress.objects.filter(pk=address_id).update(busy_until=None, served_at=timezone.now())


@transaction.atomic
def _claim(address_id: int, *, now: datetime, rng: Random) -> Claim | None:
    address = _locked(address_id)
    if address is None or address.switched_off_at or (address.retry_at and address.retry_at > now):
        return None
    found = _asked_for(address, now)
    if not found and not _waits_for_the_end_of_quiet(address, now):
        found = _unsettled(address, now) or _new(address, now)
    if not found:
        return None
    name = found[0].message or uuid4()
    again = now + max(pause_after(found[0].attempts + 1, rng), BUSY)
    for notice in found:
        notice.message, notice.attempts, notice.due_at = name, notice.attempts + 1, again
    Notice.objects.bulk_update(found, ["message", "attempts", "due_at"])
    told = [
        Told(title=n.title, body=n.body, url=n.url, happened_at=n.happened_at, number=n.number) for n in found
    ]
    return Claim(address, name, found, message(told, site=settings.PUBLIC_URL, zone=zone_of(address.person)))


def _locked(address_id: int) -> NoticeAddress | None:
    rows = NoticeAddress.objects.select_for_update(no_key=True, of=("self",)).select_related("person")
    return rows.filter(pk=address_id).first()


def _due(address: NoticeAddress, now: datetime) -> QuerySet[Notice]:
    return Notice.objects.filter(address=address, state=Notice.State.PENDING, due_at__lte=now)


def _asked_for(address: NoticeAddress, now: datetime) -> list[Notice]:
    """Return the test or the code that the person waits for, if any."""
    return list(_due(address, now).filter(kind__in=ASKED_FOR).order_by("pk")[:1])


def _waits_for_the_end_of_quiet(address: NoticeAddress, now: datetime) -> bool:
    """Put everything off where quiet hours have begun since it was planned; return whether they have."""
    until = after_quiet(now, rules_of(address))
    if until > now:
        _due(address, now).update(due_at=until)
    return until > now


def _unsettled(address: NoticeAddress, now: datetime) -> list[Notice]:
    """Return the notices of the oldest message that was tried and is due again."""
    rows = _due(address, now).exclude(message=None)
    name = rows.order_by("due_at", "pk").values_list("message", flat=True).first()
    same = Notice.objects.filter(address=address, state=Notice.State.PENDING, message=name)
    return list(same.order_by("happened_at", "pk")) if name else []


def _new(address: NoticeAddress, now: datetime) -> list[Notice]:
    """Return the due notices that were not tried yet."""
    return list(_due(address, now).filter(message=None).order_by("happened_at", "pk")[:MOST])


def _send(claim: Claim) -> Reply:
    try:
        place = claim.address.address["url"]
    except (UnreadableSecretError, KeyError):
        return Reply(good=False, problem="the stored address cannot be read; delete it and add it again")
    calls.release_connection()
    if claim.address.way == Way.EMAIL:
        return mail.send(place, claim.text, message=claim.name)
    return ask.send(place, title=claim.text.title, body=claim.text.body)


@transaction.atomic
def _write_down(address_id: int, claim: Claim, reply: Reply, *, now: datetime, rng: Random) -> None:
    address = _locked(address_id)
    if address is None:  # it was deleted meanwhile
        return
    rows = Notice.objects.filter(address=address, message=claim.name, state=Notice.State.PENDING)
    if reply.good:
        rows.update(state=Notice.State.SENT, ended_at=now, problem="")
        address.failing_since, address.failures, address.problem, address.retry_at = None, 0, "", None
        address.last_sent_at = now
    else:
        _failed(address, claim, reply, now=now, rng=rng)
    address.save(
        update_fields=["failing_since", "failures", "problem", "retry_at", "last_sent_at", "switched_off_at"]
    )


def _failed(address: NoticeAddress, claim: Claim, reply: Reply, *, now: datetime, rng: Random) -> None:
    """Plan the next try, give up what is too old, and switch off an address that failed for three days."""
    if address.retry_at is None or now - address.retry_at > FORGOTTEN_AFTER:
        address.failing_since, address.failures = (
            now,
            0,
        )  # the one before is long over, and nothing was tried since
    address.failures += 1
    address.problem = reply.problem[:255]
    address.retry_at = now + pause_after(address.failures, rng)
    rows = Notice.objects.filter(address=address, message=claim.name, state=Notice.State.PENDING)
    rows.update(due_at=address.retry_at, problem=address.problem)
    over = rows.filter(give_up_at__lte=address.retry_at) | rows.filter(kind__in=ASKED_FOR)
    over.update(state=Notice.State.GIVEN_UP, ended_at=now)
    log.info("notice_failed", address=address.pk, problem=address.problem, failures=address.failures)
    if address.failing_since is not None and now - address.failing_since >= SWITCHED_OFF_AFTER:
        _switch_off(address, now)


def _switch_off(address: NoticeAddress, now: datetime) -> None:
    address.switched_off_at = now
    waiting = Notice.objects.filter(address=address, state=Notice.State.PENDING)
    waiting.update(state=Notice.State.GIVEN_UP, ended_at=now)
    log.warning("notice_address_switched_off", address=address.pk)
    tell(
        address.person_id,
        Notification.Kind.WEBHOOK,
        key=f"address:{address.pk}:{now:%Y%m%d%H%M%S}",
        title="An address for notifications was switched off",
        body=f"{address}: nothing arrived for three days ({address.problem}). Repair it, then switch it on again.",
        url="/notifications/settings/",
    )
