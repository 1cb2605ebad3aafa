"""Adds, confirms, changes, tests and deletes the addresses of a person."""

import re
import secrets
from collections.abc import Sequence
from datetime import timedelta

from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import transaction
from django.utils import timezone
from django.utils.crypto import constant_time_compare, salted_hmac

from accounts.models import Role, User
from accounts.roles import require_touch
from activity.models import Notification
from audit.record import differing, record, values_of
from delivery.sessions import calls
from notices import mail
from notices.models import CODE, TEST, Notice, NoticeAddress, Preferences, Rhythm, Way
from notices.outside import ask
from notices.outside.services import names, service_of
from notices.preferences import plan_anew

MOST = 10  # addresses of one person
LONGEST = 1_000
CODE_LIVES = timedelta(minutes=30)
CODE_TRIES = 5
CODES_PER_DAY = 5  # of one person: the mailbox may be a stranger's
TRIED_FOR = timedelta(minutes=30)
SEEN = ("shown", "kinds", "rhythm")  # columns without a secret
MAILBOX = re.compile(r"[^\s@/:]+@[^\s@/:]+")


class BadAddressError(ValueError):
    """The address cannot be used; the text says why, and `field` where."""

    def __init__(self, field: str, sentence: str) -> None:
        super().__init__(sentence)
        self.field = field


def add(person: User, text: str, *, kinds: Sequence[str], rhythm: str) -> NoticeAddress:
    """Add an address: a mailbox, which gets a code to confirm it, or an address of a chat service."""
    text = text.strip()
    if MAILBOX.fullmatch(text):
        return _add_mailbox(person, text, kinds=kinds, rhythm=rhythm)
    return _add_service(person, text, kinds=kinds, rhythm=rhythm)


def _add_mailbox(person: User, text: str, *, kinds: Sequence[str], rhythm: str) -> NoticeAddress:
    if not mail.is_set():
        raise BadAddressError("address", "This installation has no mail server, so it cannot send e-mail.")
    try:
        validate_email(text)
    except ValidationError as error:
        raise BadAddressError("address", "This is not an e-mail address.") from error
    with transaction.atomic():
        made = _made(person, Way.EMAIL, text, shown=_masked(text), kinds=kinds, rhythm=rhythm)
        _send_code(made)
        record("notices.address_added", made, by=person, after=values_of(made, SEEN))
    return made


def _add_service(person: User, text: str, *, kinds: Sequence[str], rhythm: str) -> NoticeAddress:
    service = service_of(text)
    if service is None or len(text) > LONGEST:
        known = ", ".join(names())
        raise BadAddressError(
            "address", f"This is neither an e-mail address nor one of these services: {known}."
        )
    with calls.calling():  # a person who adds one after the other takes no place of others
        reply = ask.check(text)
    if not reply.good:
        raise BadAddressError(
            "address", f"{service.name}: {reply.problem}. Look at the example for this service."
        )
    shown = f"{service.name} at {reply.host}" if reply.host else service.name
    with transaction.atomic():
        made = _made(person, Way.SERVICE, text, shown=shown[:120], kinds=kinds, rhythm=rhythm)
        made.confirmed_at = timezone.now()
        made.save(update_fields=["confirmed_at"])
        record("notices.address_added", made, by=person, after=values_of(made, SEEN))
    return made


def _made(
    person: User, way: Way, text: str, *, shown: str, kinds: Sequence[str], rhythm: str
) -> NoticeAddress:
    User.objects.select_for_update(no_key=True).get(pk=person.pk)
    own = list(NoticeAddress.objects.filter(person=person))
    if len(own) >= MOST:
        raise BadAddressError("address", f"There are {MOST} addresses already. Delete one first.")
    if any(each.shown == shown and each.address.get("url") == text for each in own):
        raise BadAddressError("address", "This address is in your list already.")
    return NoticeAddress.objects.create(
        person=person, way=way, address={"url": text}, shown=shown, kinds=known(kinds), rhythm=Rhythm(rhythm)
    )


def known(kinds: Sequence[str]) -> list[str]:
    """Return the kinds in the order in which pages show them; unknown ones are refused."""
    chosen = {Notification.Kind(kind) for kind in kinds}
    return [kind.value for kind in Notification.Kind if kind in chosen]


def _masked(mailbox: str) -> str:
    name, _, domain = mailbox.rpartition("@")
    return f"{name[0]}…@{domain}"[:120]


@transaction.atomic
def send_code(address: NoticeAddress, *, by: User) -> None:
    """Send another code to a mailbox that was not confirmed yet."""
    Preferences.objects.get_or_create(person=address.person)
    address = _locked(address, by)
    if address.confirmed_at is None:
        _send_code(address)
        record("notices.code_sent", address, by=by)


def _send_code(address: NoticeAddress) -> None:
    now = timezone.now()
    chosen, _ = Preferences.objects.select_for_update().get_or_create(person=address.person)
    sent = chosen.codes if chosen.codes_on == now.date() else 0
    if sent >= CODES_PER_DAY:
        raise BadAddressError("address", f"{CODES_PER_DAY} codes were sent today. Try again tomorrow.")
    chosen.codes_on, chosen.codes = now.date(), sent + 1
    chosen.save(update_fields=["codes_on", "codes"])
    code = f"{secrets.randbelow(10**6):06}"
    address.code_hash, address.code_at, address.tries = _hash(address, code), now, 0
    address.save(update_fields=["code_hash", "code_at", "tries"])
    Notice.objects.filter(address=address, kind=CODE, state=Notice.State.PENDING).delete()
    _queue(
        address,
        CODE,
        title=f"{code} is your code for Paceline",
        body=f"{address.person} wants notifications of Paceline to arrive here. Enter {code} on the page within "
        "30 minutes. If this is not you, ignore this mail: nothing more is sent.",
    )


def _hash(address: NoticeAddress, code: str) -> str:
    return salted_hmac("paceline.notices.code", f"{address.pk}:{code}", algorithm="sha256").hexdigest()


@transaction.atomic
def confirm(address: NoticeAddress, code: str, *, by: User) -> bool:
    """Confirm a mailbox with the code that was sent there; return whether it was the right one."""
    address = _locked(address, by)
    now = timezone.now()
    old = address.code_at is None or now - address.code_at > CODE_LIVES or address.tries >= CODE_TRIES
    address.tries = min(address.tries + 1, CODE_TRIES)
    typed = _hash(address, "".join(code.split()))
    good = not old and bool(address.code_hash) and constant_time_compare(typed, address.code_hash)
    if good:
        address.confirmed_at, address.code_hash = now, ""
        record("notices.address_confirmed", address, by=by)
    address.save(update_fields=["tries", "confirmed_at", "code_hash"])
    return good


@transaction.atomic
def change(address: NoticeAddress, *, kinds: Sequence[str], rhythm: str, by: User) -> NoticeAddress:
    """Change what the address is told, and how often; what waits there is planned anew."""
    address = _locked(address, by)
    before = values_of(address, SEEN)
    address.kinds, address.rhythm = known(kinds), Rhythm(rhythm)
    address.save(update_fields=["kinds", "rhythm"])
    old, new = differing(before, values_of(address, SEEN))
    record("notices.address_changed", address, by=by, before=old, after=new)
    unwanted = Notice.objects.filter(address=address, state=Notice.State.PENDING, message=None)
    unwanted.exclude(kind__in=[*address.kinds, TEST, CODE]).delete()
    plan_anew(address, now=timezone.now())
    return address


@transaction.atomic
def switch_on(address: NoticeAddress, *, by: User) -> None:
    """Use the address again. What happened meanwhile is not told there."""
    address = _locked(address, by)
    address.switched_off_at, address.failing_since, address.failures = None, None, 0
    address.problem, address.retry_at = "", None
    address.save(update_fields=["switched_off_at", "failing_since", "failures", "problem", "retry_at"])
    record("notices.address_switched_on", address, by=by)


@transaction.atomic
def test(address: NoticeAddress, *, by: User) -> None:
    """Send a test now, whatever the hour."""
    address = _locked(address, by)
    if address.switched_off_at is not None:
        raise BadAddressError("address", "It is switched off. Switch it on first.")
    if address.confirmed_at is None:
        raise BadAddressError("address", "Confirm the address first.")
    if Notice.objects.filter(address=address, kind=TEST, state=Notice.State.PENDING).exists():
        raise BadAddressError("address", "A test is on its way already.")
    now = timezone.now()
    NoticeAddress.objects.filter(pk=address.pk, retry_at__gt=now).update(retry_at=now)
    _queue(address, TEST, title="A test of Paceline", body="Notifications of Paceline arrive here.")
    record("notices.address_tested", address, by=by)


def _queue(address: NoticeAddress, kind: str, *, title: str, body: str) -> None:
    now = timezone.now()
    Notice.objects.create(
        address=address,
        kind=kind,
        subject=f"{kind}:{secrets.token_hex(8)}",
        title=title,
        body=body,
        happened_at=now,
        due_at=now,
        give_up_at=now + TRIED_FOR,
    )


@transaction.atomic
def delete(address: NoticeAddress, *, by: User) -> None:
    address = _locked(address, by)
    record("notices.address_removed", address, by=by, before=values_of(address, SEEN))
    address.delete()


def _locked(address: NoticeAddress, by: User) -> NoticeAddress:
    require_touch(address, by, Role.MANAGE)
    rows = NoticeAddress.objects.select_for_update(no_key=True, of=("self",)).select_related("person")
    return rows.get(pk=address.pk)
