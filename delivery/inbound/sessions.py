"""What a service says about an account's session, and what that makes of the account. Pure."""

from collections.abc import Mapping

from delivery.states import AccountStatus
from delivery.transports.base import AccountState

Moves = Mapping[AccountState, Mapping[AccountStatus, AccountStatus]]

# What is not here stays as it is: a person's pause is lifted by a person, and so is a flag. An account that waits for
# its phone though it was connected has been logged out there.
HEARD: Moves = {
    AccountState.WORKING: {
        AccountStatus.UNPAIRED: AccountStatus.ACTIVE,
        AccountStatus.PAIRING: AccountStatus.ACTIVE,
        AccountStatus.OFFLINE: AccountStatus.ACTIVE,
    },
    AccountState.PAIRING: {
        AccountStatus.UNPAIRED: AccountStatus.PAIRING,
        AccountStatus.ACTIVE: AccountStatus.FLAGGED,
        AccountStatus.PAUSED: AccountStatus.FLAGGED,
        AccountStatus.OFFLINE: AccountStatus.FLAGGED,
    },
    AccountState.STOPPED: {
        AccountStatus.PAIRING: AccountStatus.UNPAIRED,
        AccountStatus.ACTIVE: AccountStatus.OFFLINE,
    },
    AccountState.BLOCKED: {
        AccountStatus.PAIRING: AccountStatus.UNPAIRED,
        AccountStatus.ACTIVE: AccountStatus.FLAGGED,
        AccountStatus.PAUSED: AccountStatus.FLAGGED,
        AccountStatus.OFFLINE: AccountStatus.FLAGGED,
    },
}
# A person asked for a connection just now: that lifts a flag, and a code to scan is what they expect.
ASKED: Moves = {
    AccountState.WORKING: {AccountStatus.FLAGGED: AccountStatus.ACTIVE},
    AccountState.PAIRING: {
        AccountStatus.ACTIVE: AccountStatus.PAIRING,
        AccountStatus.PAUSED: AccountStatus.PAIRING,
        AccountStatus.OFFLINE: AccountStatus.PAIRING,
        AccountStatus.FLAGGED: AccountStatus.PAIRING,
    },
}
REASONS: Mapping[AccountState, str] = {
    AccountState.PAIRING: "its phone was logged out",
    AccountState.STOPPED: "its service says that it is not connected",
    AccountState.BLOCKED: "its service blocked it, or refuses its credentials",
}


def follows(status: AccountStatus, state: AccountState, *, asked: bool = False) -> AccountStatus:
    """What an account becomes when its service says `state`; `asked` where a person wants it connected."""
    heard = HEARD.get(state, {}).get(status, status)
    return ASKED.get(state, {}).get(status, heard) if asked else heard
