"""The next action of a person on an account. `account_sentence.py` describes the state of the account."""

from collections.abc import Mapping
from dataclasses import dataclass

from accounts.models import Account, Role
from delivery.states import AccountStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class NextAction:
    """A button for the next action on an account: `url` is the name of an address, `post` whether it is a POST."""

    label: str
    url: str
    icon: str
    post: bool = True
    role: Role = Role.MANAGE  # which a person needs for it


def next_action(account: Account, *, pairs: bool) -> NextAction | None:
    """Return the next action for the account's status, or None. `pairs` if its transport needs a code to be scanned."""
    connect = NextAction(label="Pair" if pairs else "Connect", url="accounts:connect", icon="pairing")
    actions: Mapping[str, NextAction] = {
        AccountStatus.UNPAIRED: connect,
        AccountStatus.PAIRING: NextAction(
            label="Show the code", url="accounts:pair", icon="pairing", post=False
        ),
        AccountStatus.PAUSED: NextAction(
            label="Resume", url="accounts:resume", icon="play", role=role_to_start(account)
        ),
        AccountStatus.OFFLINE: NextAction(label="Reconnect", url="accounts:connect", icon="retry"),
        AccountStatus.FLAGGED: NextAction(label="Reconnect", url="accounts:connect", icon="retry"),
    }
    return None if account.archived_at is not None else actions.get(account.status)


def role_to_start(account: Account) -> Role:
    """Return the role that starting an account needs: one that is paused for its health is a limit to lift."""
    return Role.MANAGE if account.health == Account.Health.PAUSED else Role.SEND
