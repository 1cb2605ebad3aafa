"""The sentences of a hand-over, the same at every door."""

from collections.abc import Mapping, Sequence

from accounts.models import Account
from delivery.hand_over.split import Split, Stays

WHY = {
    Stays.KNOWN: ("has talked with this account before", "have talked with this account before"),
    Stays.NOT_A_MEMBER: (
        "is a group or address that none of the others is known to reach",
        "are groups or addresses that none of the others is known to reach",
    ),
    Stays.BEGUN: ("has received a part already", "have received a part already"),
    Stays.IN_DOUBT: ("may have received it already", "may have received it already"),
}


def moves(split: Split, accounts: Mapping[int, Account]) -> str:
    """Say how many messages go to which account: 612 messages: 400 to Shop, 212 to Second phone."""
    if not split.moved:
        return "Nothing can move to these accounts."
    most_first = sorted(split.moves.items(), key=lambda each: (-each[1], each[0]))
    named = [f"{number:,} to {accounts[pk]}" for pk, number in most_first]
    if len(named) == 1:
        return f"{_messages(split.moved)} to {accounts[most_first[0][0]]}."
    return f"{_messages(split.moved)}: {', '.join(named)}."


def stays(split: Split) -> str:
    """Say how many stay, with the reasons; empty for none."""
    stayed = split.stayed
    if not stayed:
        return ""
    reasons = [f"{stayed[why]:,} {WHY[why][stayed[why] != 1]}" for why in Stays if stayed[why]]
    total = stayed.total()
    return f"{total:,} {'stays' if total == 1 else 'stay'}: {', '.join(reasons)}."


def stuck(accounts: Sequence[Account], pending: int) -> str:
    """Say that a run does not go on while accounts cannot send."""
    names = " and ".join(
        f"{account} is {'archived' if account.archived_at else account.get_status_display().lower()}"
        for account in accounts
    )
    waits = "waits" if pending == 1 else "wait"
    return f"{names}: {_messages(pending)} {waits} until {'it' if len(accounts) == 1 else 'they'} can send again."


def waiting(count: int) -> str:
    """Say how many wait for an account that cannot send; empty for none."""
    if not count:
        return ""
    return f"{_messages(count)} {'waits' if count == 1 else 'wait'} for the present account."


def done(name: str, split: Split, accounts: Mapping[int, Account]) -> str:
    """Say what a hand-over has done to a run."""
    return f"“{name}” was handed over. {moves(split, accounts)} {stays(split)}".strip()


def _messages(count: int) -> str:
    return f"{count:,} message{'' if count == 1 else 's'}"
