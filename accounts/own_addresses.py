"""Decides where a person may send tests: only to their own addresses (SPEC M3).

An address is a person's own, for one account, after they typed a code that this account sent there. Codes could annoy
strangers, so their number is capped per person, per address and in total, and their text is fixed. People who opted
out or are blocked get neither a test nor a code.
"""

import secrets
from collections.abc import Sequence
from datetime import datetime, timedelta

from django.conf import settings
from django.db import connection, transaction
from django.db.models import F, Q, QuerySet
from django.utils import timezone
from django.utils.crypto import constant_time_compare, salted_hmac

from accounts.addresses import BadAddressError, canonical
from accounts.models import Account, OwnAddress, Recipient, TestMessage, User
from accounts.models.account import Channel
from accounts.regions import region_of
from audit.record import record

CODE_LIVES = timedelta(minutes=15)
CODE_TRIES = 5
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
CODES_PER_HOUR = 3  # of one person with one account
CODES_PER_DAY = 10  # of one person
CODES_TO_ONE_ADDRESS = 3  # in a day, for all people together: the address may be a stranger's
CODES_IN_ALL = 100  # in an hour
LOCK = 7_305_011  # two requests at once must not both take the last free place under a cap


class NotAllowedError(Exception):
    """Raised when nothing may be sent to an address. The text tells a person why, and what to do."""


class TakenOverError(Exception):
    """Raised when another worker has taken over the account."""


def read(account: Account, text: str) -> str:
    """Return the canonical form of an address that a person typed; raises NotAllowedError."""
    try:
        found = canonical(account.channel, text, region=region_of(account.owner))
    except BadAddressError as error:
        raise NotAllowedError(str(error)) from error
    if found.kind == "group":
        raise NotAllowedError("A test is sent only to you. Enter your own number, not a group.")
    return found.text


def why_not(account: Account, address: str) -> str:
    """Return why nothing may be sent to `address`, or an empty string."""
    said = Recipient.objects.filter(owner=account.owner_id, channel=account.channel, address=address)
    kept_from = (
        Q(opted_out_at__isnull=False) | Q(blocked_at__isnull=False) | Q(undeliverable_at__isnull=False)
    )
    for recipient in said.filter(kept_from):
        state = "opted out" if recipient.opted_out_at else "is blocked"
        if not (recipient.opted_out_at or recipient.blocked_at):
            state = "is undeliverable"
        return f"{address} {state}, so nothing is sent there. Use another address."
    return ""


def is_confirmed(account_id: int, person_id: int, address: str) -> bool:
    """Return whether the person confirmed the address as their own, for this account."""
    return _own(account_id, person_id, address).filter(confirmed_at__isnull=False).exists()


def why_not_own(account_id: int, person_id: int, address: str) -> str:
    """Return why no test may be sent to `address`, or an empty string when the person confirmed it."""
    if is_confirmed(account_id, person_id, address):
        return ""
    return f"{address} is not confirmed as yours yet. Ask for a code first."


def confirmed_of(accounts: Sequence[Account], person: User) -> dict[int, str]:
    """Return, for each of the accounts that has one, the address that the person confirmed last."""
    rows = OwnAddress.objects.filter(account__in=accounts, person=person, confirmed_at__isnull=False)
    return dict(rows.order_by("confirmed_at").values_list("account_id", "address"))


@transaction.atomic
def reserve_test(account: Account, person: User, address: str) -> TestMessage:
    """Take a place under the person's daily cap; raises NotAllowedError for a refused address or a full cap."""
    _refuse_if(why_not(account, address))
    _refuse_if(why_not_own(account.pk, person.pk, address))
    _one_at_a_time()
    cap = settings.TEST_SENDS_PER_DAY
    if _asked(TestMessage.Kind.TEST, within=DAY).filter(account=account, person=person).count() >= cap:
        raise NotAllowedError(f"Limit reached: {cap} tests per day from {account}. Try again later.")
    return _reserve(account, person, address, TestMessage.Kind.TEST)


@transaction.atomic
def reserve_code(account: Account, person: User, address: str) -> TestMessage:
    """Take a place under the caps of codes; raises NotAllowedError for a refused address or a full cap."""
    _refuse_if(why_not(account, address))
    _one_at_a_time()
    _refuse_if(_too_many_codes(account, person, address))
    OwnAddress.objects.get_or_create(account=account, person=person, address=address)
    return _reserve(account, person, address, TestMessage.Kind.CODE)


@transaction.atomic
def begin(message: TestMessage, *, fence: int, messages: int = 1) -> bool:
    """Return whether the message may leave now. True only once, since a task may be delivered twice.

    `fence` is the number of the sender's lease. Raises TakenOverError when another worker has taken over the account:
    it counted without this message. The lock stops the next worker from taking the account before this is written.
    """
    account = Account.objects.filter(pk=message.account_id).select_for_update(no_key=True)
    if account.values_list("fence", flat=True).get() != fence:
        raise TakenOverError
    rows = TestMessage.objects.filter(pk=message.pk, begun_at=None)
    return rows.update(begun_at=timezone.now(), messages=messages) == 1


def end(message: TestMessage) -> None:
    """Mark that the ledger holds all parts of the message that left; until then the limits count it as under way."""
    TestMessage.objects.filter(pk=message.pk).update(ended_at=timezone.now())


def issue(message: TestMessage) -> str:
    """Return the code to send. Only its hash is stored, and an earlier code becomes invalid."""
    code = f"{secrets.randbelow(10**6):06}"
    own = OwnAddress.objects.get(account=message.account, person=message.person, address=message.address)
    own.code_hash, own.code_at, own.tries = _hash(own, code), timezone.now(), 0
    own.save(update_fields=["code_hash", "code_at", "tries"])
    return code


def waits_for_code(account: Account, person: User, address: str) -> bool:
    """Return whether a code was requested that can still be typed."""
    asked = _asked(TestMessage.Kind.CODE, within=CODE_LIVES)
    return asked.filter(account=account, person=person, address=address).exists()


def confirm(account: Account, person: User, address: str, code: str) -> None:
    """Check the code that a person typed; raises NotAllowedError. A wrong code counts as a try."""
    rows = _own(account.pk, person.pk, address)
    usable = rows.filter(code_at__gt=timezone.now() - CODE_LIVES, tries__lt=CODE_TRIES).exclude(code_hash="")
    if not usable.update(tries=F("tries") + 1):
        raise NotAllowedError("This code has expired or was tried too often. Ask for a new one.")
    own = rows.get()
    if not constant_time_compare(own.code_hash, _hash(own, "".join(code.split()))):
        raise NotAllowedError(_wrong(CODE_TRIES - own.tries))
    with transaction.atomic():
        rows.update(confirmed_at=timezone.now(), code_hash="")
        Account.objects.filter(pk=account.pk, own_address="").update(own_address=address)
        record("address.confirmed", account, by=person)


def text_of(code: str, person: User) -> str:
    """Return the message that carries a code. Only a name varies, so nobody can use it to write to strangers."""
    name = person.get_username()[:40]
    return (
        f"{code} is your Paceline code. “{name}” asked to send test messages to this address. "
        "If that is not you, ignore this message: without the code nothing else is sent."
    )


def action_for(account: Account) -> str:
    """Return the action that sends a code; the code counts against the limits of this action."""
    return "email" if account.channel == Channel.EMAIL else "message"


def _too_many_codes(account: Account, person: User, address: str) -> str:
    hour = _asked(TestMessage.Kind.CODE, within=HOUR)
    day = _asked(TestMessage.Kind.CODE, within=DAY)
    if hour.filter(account=account, person=person).count() >= CODES_PER_HOUR:
        return f"You asked for {CODES_PER_HOUR} codes in an hour. Use the last one, or try again later."
    if day.filter(person=person).count() >= CODES_PER_DAY:
        return f"You asked for {CODES_PER_DAY} codes in 24 hours. Try again tomorrow."
    if day.filter(address=address).count() >= CODES_TO_ONE_ADDRESS:
        return f"{address} got {CODES_TO_ONE_ADDRESS} codes in 24 hours. Try again tomorrow."
    if hour.count() >= CODES_IN_ALL:
        return "Too many codes were requested in this installation. Try again in an hour."
    return ""


def _wrong(left: int) -> str:
    return f"The code is wrong. Tries left: {left}." if left else "The code is wrong. Ask for a new one."


def _refuse_if(why: str) -> None:
    if why:
        raise NotAllowedError(why)


def _one_at_a_time() -> None:
    """Wait for another transaction that is counting; the lock ends with the transaction."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [LOCK])


def _reserve(account: Account, person: User, address: str, kind: TestMessage.Kind) -> TestMessage:
    return TestMessage.objects.create(
        account=account, person=person, address=address, kind=kind, asked_at=timezone.now()
    )


def _asked(kind: TestMessage.Kind, *, within: timedelta) -> QuerySet[TestMessage]:
    since: datetime = timezone.now() - within
    return TestMessage.objects.filter(kind=kind, asked_at__gt=since)


def _own(account_id: int, person_id: int, address: str) -> QuerySet[OwnAddress]:
    return OwnAddress.objects.filter(account=account_id, person=person_id, address=address)


def _hash(own: OwnAddress, code: str) -> str:
    return salted_hmac("accounts.own_addresses", f"{own.pk}:{code}", algorithm="sha256").hexdigest()
