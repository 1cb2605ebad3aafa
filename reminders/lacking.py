"""Which variables are missing, for how many, and what these would not get (SPEC M1)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from delivery import audience
from delivery.render import variables
from reminders.models import Part, Reminder

# What a missing variable costs, the worst first: who does not get the message gets nothing after it either.
NOTHING = "they would get nothing"
NO_SECOND = "they would get no second message"
NO_FOLLOW_UP = "they would not be followed up"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lack:
    """A variable that `count` recipients have no value for."""

    name: str
    count: int
    loss: str

    def __str__(self) -> str:
        whom = "1 recipient" if self.count == 1 else f"{self.count:,} recipients"
        return f"{{{{ {self.name} }}}} is missing for {whom}: {self.loss}."


def lacking(
    reminder: Reminder,
    account_ids: Sequence[int],
    *,
    first: Iterable[str],
    second: Iterable[str],
    follow_ups: Iterable[str],
) -> list[Lack]:
    """What these texts would miss among those who would get them now."""
    losses = _losses({NO_FOLLOW_UP: follow_ups, NO_SECOND: second, NOTHING: [reminder.subject, *first]})
    counts = audience.lacking(reminder.pk, account_ids, sorted(losses))
    return [Lack(name=name, count=count, loss=losses[name]) for name, count in counts.items()]


def lacking_as_saved(reminder: Reminder, account_ids: Sequence[int]) -> list[Lack]:
    texts = list(reminder.parts.order_by("role", "position").values_list("role", "text"))
    first = [text for role, text in texts if role == Part.Role.FIRST]
    second = [text for role, text in texts if role == Part.Role.SECOND]
    return lacking(reminder, account_ids, first=first, second=second, follow_ups=follow_ups_of(reminder))


def follow_ups_of(reminder: Reminder) -> list[str]:
    return list(reminder.follow_up_steps.values_list("text", flat=True))


def _losses(texts: Mapping[str, Iterable[str]]) -> dict[str, str]:
    """The worst loss that each variable brings; `texts` has it last."""
    return {name: loss for loss, written in texts.items() for text in written for name in variables(text)}
