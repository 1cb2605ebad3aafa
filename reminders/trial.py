"""A test of a reminder: its message to the operator's own address, as a real recipient would read it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kombu.exceptions import OperationalError
from redis.exceptions import RedisError

from accounts import own_addresses
from accounts.models import Account, Recipient, Role, User
from accounts.models.account import Channel
from accounts.own_addresses import NotAllowedError
from accounts.roles import require_touch
from delivery.parts import values_of, variables
from delivery.trial import send
from delivery.trial.store import Trial
from reminders.audience import some_of
from reminders.drafts import NotPossibleError
from reminders.fire import freeze
from reminders.models import Reminder
from reminders.preview import OFFERED, SAMPLE

SAMPLE_VALUES = "sample"  # chosen instead of a recipient's id


class NotConfirmedError(NotPossibleError):
    """The address must be confirmed by a code before a test is sent there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialInput:
    """A person's input: the account, the address, and whose values to use (a recipient's id, or "sample")."""

    account_id: str = ""
    address: str = ""
    values: str = ""


def try_out(reminder: Reminder, given: TrialInput, *, by: User, code: str = "") -> Trial:
    """Send the reminder to the person's own address, counted in no run and inside the limits.

    A `code` confirms the address first. Raises NotConfirmedError when one is needed, and NotPossibleError.
    """
    require_touch(reminder, by, Role.SEND)
    firing, account = freeze(reminder), account_of(reminder, given.account_id)
    if not firing.parts:
        raise NotPossibleError("There is no message to try yet. Write one first.")
    texts = [text for part in firing.parts for text in part.wordings or (part.text,)]
    values = with_samples(_values(reminder, given.values), [firing.subject, *texts], reminder.channel)
    address = _confirmed(account, given.address, code, by)
    trial = Trial(
        account_id=account.pk,
        person_id=by.pk,
        reminder_id=reminder.pk,
        address=address,
        action=firing.action,
        subject=firing.subject,
        parts=[part.as_json() for part in firing.parts],
        values=values,
    )
    return _ask(trial, by)


def with_samples(values: Mapping[str, object], texts: Iterable[str], channel: str) -> dict[str, object]:
    """Return the values, with a sample for each variable of the texts that has none: its name in brackets."""
    samples, needed = SAMPLE[Channel(channel)], set().union(*map(variables, texts))
    missing = {name for name in needed if values.get(name) in (None, "")}
    return dict(values) | {name: samples.get(name, f"[{name}]") for name in missing}


def ask_for_code(reminder: Reminder, given: TrialInput, *, by: User) -> Trial:
    """Send a code to the address, which confirms the address when it is typed; raises NotPossibleError."""
    require_touch(reminder, by, Role.SEND)
    account = account_of(reminder, given.account_id)
    trial = Trial(
        account_id=account.pk,
        person_id=by.pk,
        kind="code",
        reminder_id=reminder.pk,
        address=_read(account, given.address),
        action=own_addresses.action_for(account),
        subject="",
        parts=[],
        values={},
    )
    return _ask(trial, by)


def account_of(reminder: Reminder, account_id: str) -> Account:
    """Return the chosen account of the reminder, else its first; raises NotPossibleError."""
    shares = reminder.reminder_accounts.select_related("account__owner").order_by("position", "id")
    accounts = {str(share.account_id): share.account for share in shares}
    if not accounts:
        raise NotPossibleError("There is no account to send from. Choose one first.")
    return accounts.get(account_id) or next(iter(accounts.values()))


def offered(reminder: Reminder) -> list[Recipient]:
    """Return some recipients whose values a test can be filled with."""
    return some_of(reminder, OFFERED)


def code_is_under_way(reminder: Reminder, given: TrialInput, *, by: User) -> bool:
    """Return whether a code for the typed address was requested a moment ago."""
    try:
        account = account_of(reminder, given.account_id)
        return own_addresses.waits_for_code(account, by, _read(account, given.address))
    except NotPossibleError:
        return False


def _confirmed(account: Account, typed: str, code: str, by: User) -> str:
    """Return the address when it is the person's own; a right code makes it so."""
    address = _read(account, typed)
    try:
        if why := own_addresses.why_not(account, address):
            raise NotPossibleError(why)
        if own_addresses.is_confirmed(account.pk, by.pk, address):
            return address
        if not code:
            raise NotConfirmedError(
                f"{address} is not confirmed as yours yet. Have a code sent there, and type it here once."
            )
        own_addresses.confirm(account, by, address, code)
    except NotAllowedError as error:
        raise NotConfirmedError(str(error)) from error
    return address


def _values(reminder: Reminder, chosen: str) -> Mapping[str, object]:
    """Return the values of the chosen recipient, of the first one when none was chosen, or sample values."""
    somebody = [] if chosen == SAMPLE_VALUES else offered(reminder)
    found = next((each for each in somebody if str(each.pk) == chosen), somebody[0] if somebody else None)
    return values_of(found) if found else dict(SAMPLE[Channel(reminder.channel)])


def _read(account: Account, typed: str) -> str:
    try:
        return own_addresses.read(account, typed)
    except NotAllowedError as error:
        raise NotPossibleError(str(error)) from error


def _ask(trial: Trial, by: User) -> Trial:
    try:
        return send.ask(trial, by=by)
    except NotAllowedError as error:
        raise NotPossibleError(str(error)) from error
    except (RedisError, OperationalError) as error:
        raise NotPossibleError(
            "Redis does not answer, so nothing was sent. Try again in a minute."
        ) from error
