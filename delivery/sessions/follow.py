"""Decides which status an account gets from what its service says about its session. Pure."""

from collections.abc import Mapping

from delivery.states import AccountStatus
from delivery.transports.base import AccountState

Moves = Mapping[AccountState, Mapping[AccountStatus, AccountStatus]]

# A pair that is not listed changes nothing: a pause by a person is ended by a person, and so is a flag. An account
# that was connected and now waits for its phone has been logged out on the phone. A session that is starting says
# nothing about the account: it may reconnect by itself in a moment.
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
# A person asked for a connection just now: that removes a flag, and the person expects a code to scan.
ASKED: Moves = {
    AccountState.WORKING: {AccountStatus.FLAGGED: AccountStatus.ACTIVE},
    # The page that waits for the code waits for the session too.
    AccountState.STARTING: {
        AccountStatus.UNPAIRED: AccountStatus.PAIRING,
        AccountStatus.OFFLINE: AccountStatus.PAIRING,
        AccountStatus.FLAGGED: AccountStatus.PAIRING,
    },
    AccountState.PAIRING: {
        AccountStatus.ACTIVE: AccountStatus.PAIRING,
        AccountStatus.PAUSED: AccountStatus.PAIRING,
        AccountStatus.OFFLINE: AccountStatus.PAIRING,
        AccountStatus.FLAGGED: AccountStatus.PAIRING,
    },
}
REASONS: Mapping[AccountState, str] = {
    AccountState.PAIRING: "the phone was logged out",
    AccountState.STARTING: "the service is starting the session",
    AccountState.STOPPED: "the service reports that this account is not connected",
    AccountState.BLOCKED: "the service blocked this account, or rejects its credentials",
}


def follows(status: AccountStatus, state: AccountState, *, asked: bool = False) -> AccountStatus:
    """Return the account's new status when its service says `state`; `asked` says that a person wants it connected."""
    heard = HEARD.get(state, {}).get(status, status)
    return ASKED.get(state, {}).get(status, heard) if asked else heard
