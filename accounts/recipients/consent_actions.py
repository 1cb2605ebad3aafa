"""Changes of consent in words, for the pages and the admin."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from accounts.models import Recipient, Role
from accounts.recipients import consent, undeliverable
from accounts.roles import Rights


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsentAction:
    """A change of consent, in the words of its page."""

    do: Callable[..., bool]
    verb: str
    text: str
    done: str
    mark: str  # the recipient's column with the time of the change
    sets: bool = False
    gives_up: bool = False

    @property
    def role(self) -> Role:
        """Return the role that it needs: lifting a mark lets messages leave again."""
        return Role.WRITE if self.sets else Role.SEND

    def suits(self, recipient: Recipient) -> bool:
        return (getattr(recipient, self.mark) is None) is self.sets


ACTIONS: Mapping[str, ConsentAction] = {
    "opt-out": ConsentAction(
        do=consent.opt_out,
        verb="Opt out",
        text="No reminder is sent to this recipient until they opt in again. This applies at once, "
        "also to runs in progress.",
        done="opted out",
        mark="opted_out_at",
        sets=True,
        gives_up=True,
    ),
    "opt-in": ConsentAction(
        do=consent.opt_in,
        verb="Opt in again",
        text="This recipient gets messages again. Do this only if they asked for it, and enter how they asked.",
        done="opted in again",
        mark="opted_out_at",
    ),
    "block": ConsentAction(
        do=consent.block,
        verb="Block",
        text="Nothing is sent to this recipient until you unblock them. This applies at once, "
        "also to runs in progress.",
        done="blocked",
        mark="blocked_at",
        sets=True,
        gives_up=True,
    ),
    "unblock": ConsentAction(
        do=consent.unblock,
        verb="Unblock",
        text="This recipient gets messages again, unless they have opted out.",
        done="unblocked",
        mark="blocked_at",
    ),
    "deliverable": ConsentAction(
        do=undeliverable.lift,
        verb="Try this address again",
        text="This recipient gets messages again. Do this if you know that the address works now; "
        "messages that bounce harm your account.",
        done="no longer undeliverable",
        mark="undeliverable_at",
    ),
    "convert": ConsentAction(
        do=consent.convert,
        verb="Mark as converted",
        text="This recipient did what you asked for. They get no more follow-ups, but still get reminders.",
        done="marked as converted",
        mark="converted_at",
        sets=True,
    ),
    "reopen": ConsentAction(
        do=consent.reopen,
        verb="Not converted",
        text="This recipient gets follow-ups again, if the reminder has any.",
        done="no longer converted",
        mark="converted_at",
    ),
}


def suiting(recipient: Recipient, may: Rights) -> list[tuple[str, ConsentAction]]:
    """Return the changes of consent that are possible now for a person with these rights, each with its name."""
    return [
        (name, action)
        for name, action in ACTIONS.items()
        if action.suits(recipient) and may.holds(action.role)
    ]
