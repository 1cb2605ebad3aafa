"""Changes of consent in words, for the pages and the admin."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from accounts import consent
from accounts.models import Recipient


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """A change of consent, in the words of its page."""

    do: Callable[..., bool]
    verb: str
    text: str
    done: str
    mark: str  # the recipient's column that says since when
    sets: bool = False
    gives_up: bool = False

    def suits(self, recipient: Recipient) -> bool:
        return (getattr(recipient, self.mark) is None) is self.sets


MOVES: Mapping[str, Move] = {
    "opt-out": Move(
        do=consent.opt_out,
        verb="Opt out",
        text="Nothing is sent to them any more, by any reminder, until they opt in again. It holds at once, "
        "even in the middle of a run.",
        done="opted out",
        mark="opted_out_at",
        sets=True,
        gives_up=True,
    ),
    "opt-in": Move(
        do=consent.opt_in,
        verb="Opt in again",
        text="They get messages again. Do this only when they asked for it, and say how.",
        done="opted in again",
        mark="opted_out_at",
    ),
    "block": Move(
        do=consent.block,
        verb="Block",
        text="Nothing is sent to them any more, because you do not want it. It holds at once, even in the middle "
        "of a run.",
        done="blocked",
        mark="blocked_at",
        sets=True,
        gives_up=True,
    ),
    "unblock": Move(
        do=consent.unblock,
        verb="Unblock",
        text="They get messages again, unless they have opted out.",
        done="unblocked",
        mark="blocked_at",
    ),
    "convert": Move(
        do=consent.convert,
        verb="Mark as converted",
        text="They did what the reminders were for: they get no follow-ups any more. Reminders still reach them.",
        done="marked as converted",
        mark="converted_at",
        sets=True,
    ),
    "reopen": Move(
        do=consent.reopen,
        verb="Not converted after all",
        text="They get follow-ups again where a reminder has them.",
        done="no longer converted",
        mark="converted_at",
    ),
}


def suiting(recipient: Recipient) -> list[tuple[str, Move]]:
    """What can be changed about a recipient's consent as it stands, by name."""
    return [(name, move) for name, move in MOVES.items() if move.suits(recipient)]
