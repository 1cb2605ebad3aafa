"""Which variables are missing, for how many, and what these would not get (SPEC M1)."""

from collections.abc import Sequence
from dataclasses import dataclass

from delivery.audience import Audience
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Texts:
    """All that a reminder says, in the order in which it is said."""

    first: Sequence[str]  # with the subject
    second: Sequence[str] = ()
    follow_ups: Sequence[str] = ()

    @property
    def losses(self) -> dict[str, str]:
        """The worst that each variable costs whom it is missing for."""
        said = ((NO_FOLLOW_UP, self.follow_ups), (NO_SECOND, self.second), (NOTHING, self.first))
        return {name: loss for loss, texts in said for text in texts for name in variables(text)}


def texts_of(reminder: Reminder) -> Texts:
    """As it is saved."""
    parts = list(reminder.parts.order_by("role", "position").values_list("role", "text"))
    return Texts(
        first=[reminder.subject, *(text for role, text in parts if role == Part.Role.FIRST)],
        second=[text for role, text in parts if role == Part.Role.SECOND],
        follow_ups=follow_ups_of(reminder),
    )


def follow_ups_of(reminder: Reminder) -> list[str]:
    return list(reminder.follow_up_steps.values_list("text", flat=True))


def lacks(reached: Audience, texts: Texts) -> list[Lack]:
    """What these texts miss among those whom they reach, who were counted with them."""
    losses = texts.losses
    return [Lack(name=name, count=count, loss=losses[name]) for name, count in reached.lacking.items()]
