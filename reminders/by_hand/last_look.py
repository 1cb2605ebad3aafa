"""The last look before a reminder is sent by hand: to whom, from where, when it was last sent, and what to decide."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from django.conf import settings

from accounts.models import Account
from accounts.models.account import Channel
from activity.components.times import dated
from delivery.audience import Audience
from delivery.conf import ASKS_ABOVE
from delivery.models import Run
from delivery.sentences import run_summary
from reminders.audience import some_of
from reminders.by_hand.repeats import Repeat, listed, repeat_of
from reminders.headcount import headcount
from reminders.models import Reminder
from reminders.readiness import why_nobody, why_not_now

SHOWN = 5  # names of recipients
REST, EVERYONE = "rest", "everyone"  # the answers to the question who gets it again


@dataclass(frozen=True, slots=True, kw_only=True)
class LastLook:
    """All that a person should see before a reminder leaves, and whether they have answered it."""

    reminder: Reminder
    audience: Audience
    accounts: Sequence[Account]
    names: Sequence[str]
    last: Run | None  # the last run that sent something
    repeat: Repeat | None
    why_not: str  # why nothing can be sent now

    @property
    def large(self) -> bool:
        return self.audience.complete > ASKS_ABOVE

    @property
    def asks(self) -> bool:
        """Decide whether a person has to confirm before it is sent."""
        return bool(self.large or self.repeat or self.audience.short or self.why_not)

    def answered(self, said: Mapping[str, str]) -> bool:
        """Decide whether the person confirmed this very number, and decided about each question."""
        if self.why_not or (self.audience.short and "without" not in said):
            return False
        if self.repeat and said.get("again") not in {REST, EVERYONE}:
            return False
        number = said.get("number", "")
        return not self.large or (
            "confirmed" in said and number.isdecimal() and int(number[:18]) >= self.audience.complete
        )

    @property
    def to_whom(self) -> str:
        """Return the number and the first names: 1,000 groups: Choir, Parents and 998 more."""
        names = self.words_of_names
        return f"{self.audience.words_of_complete}: {names}" if names else self.audience.words_of_complete

    @property
    def words_of_names(self) -> str:
        return listed(self.names, self.audience.complete) if self.names else ""

    @property
    def from_where(self) -> str:
        names = listed([str(account) for account in self.accounts[:SHOWN]], len(self.accounts))
        return f"{names}, by {Channel(self.reminder.channel).label}"

    @property
    def last_sent(self) -> str:
        if self.last is None:
            return "Never sent before"
        at = dated(self.last.fired_at, ZoneInfo(self.reminder.zone))
        return f"{at}: {self.last_result}"

    @property
    def last_result(self) -> str:
        return run_summary.delivered(self.last) if self.last else ""

    @property
    def sentences(self) -> list[str]:
        """Return everything as sentences, for doors without a page."""
        said = [f"To {self.to_whom}. From {self.from_where}. Last sent: {self.last_sent}."]
        if self.audience.short:
            said.append(f"{self.audience.words_of_short} lack a value for the message and get nothing.")
        if self.repeat:
            said.append(f"{self.repeat.who_received} received it within the last day.")
            if self.repeat.unconfirmed:
                said.append(f"Unconfirmed in the last run: {self.repeat.words_of_names}.")
        return [*said, *filter(None, [self.why_not])]


def last_look(reminder: Reminder, *, now: datetime) -> LastLook:
    rows = reminder.reminder_accounts.select_related("account").order_by("position", "id")
    accounts = [row.account for row in rows.defer("account__credentials")]
    reached = headcount(reminder, [account.pk for account in accounts])
    return LastLook(
        reminder=reminder,
        audience=reached,
        accounts=accounts,
        names=[str(recipient) for recipient in some_of(reminder, SHOWN)],
        last=Run.objects.filter(reminder=reminder, kind=Run.Kind.REMINDER, sent__gt=0)
        .order_by("-pk")
        .first(),
        repeat=repeat_of(reminder, now=now),
        why_not=why_nobody(reminder, reached) or why_not_now(reminder, now, hold=hold()),
    )


def hold() -> timedelta:
    """Return how long a large run waits so that its sender can take it back."""
    return timedelta(seconds=settings.UNDO_SECONDS)
