"""Why an account is or is not sending, in one sentence, until when, and what to do next (SPEC U6)."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from accounts.models import Account
from delivery.states import AccountStatus, WaitReason


@dataclass(frozen=True, slots=True, kw_only=True)
class Why:
    """One sentence; `until` where something ends by itself."""

    sentence: str
    until: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NextAction:
    """What a person does next about an account: the name of an address, and whether it is a POST."""

    label: str
    url: str
    icon: str
    post: bool = True


WAITS: Mapping[str, str] = {
    WaitReason.PER_MINUTE: "It has sent what it may in one minute",
    WaitReason.PER_HOUR: "It has sent what it may in one hour",
    WaitReason.PER_DAY: "It has sent what it may today",
    WaitReason.BATCH_PAUSE: "It rests after a batch",
    WaitReason.SLOWED: "Its service asked for less, and it waits",
    WaitReason.NOT_BEFORE: "Its next message is planned for later",
    WaitReason.WINDOW: "The delivery window of its run is closed",
    WaitReason.LIMITER_AWAY: "Redis does not answer, and without its limits nothing may leave",
}
STOPPED: Mapping[AccountStatus, str] = {
    AccountStatus.UNPAIRED: "It is not connected to its service",
    AccountStatus.PAIRING: "It waits for its code to be scanned",
    AccountStatus.PAUSED: "A person paused it",
    AccountStatus.OFFLINE: "It lost its connection, and goes on by itself when that is back",
    AccountStatus.FLAGGED: "Its service stopped it, and somebody has to look at why",
}


def why(account: Account, *, running: int, paused: int, now: datetime) -> Why:
    """`running` and `paused` are how many of its runs are so."""
    status = AccountStatus(account.status)
    if account.archived_at is not None:
        return Why(sentence="It is archived: nothing leaves from it.")
    if status is not AccountStatus.ACTIVE:
        return Why(sentence=_stopped(status, account.status_reason))
    if not running:
        return Why(sentence=_idle(paused))
    over = account.waiting_until is not None and account.waiting_until <= now
    if account.waiting_for not in WAITS or over:
        return Why(sentence="It is sending.")
    return Why(sentence=f"{WAITS[account.waiting_for]}.", until=account.waiting_until)


def _stopped(status: AccountStatus, reason: str) -> str:
    reason = reason.rstrip(".")  # some services speak in sentences
    if status is AccountStatus.PAUSED and reason:
        return f"It was {reason}."  # which names the person
    return f"{STOPPED[status]}: {reason}." if reason else f"{STOPPED[status]}."


def _idle(paused: int) -> str:
    if not paused:
        return "It is ready, and has nothing to send."
    return "Its run is paused." if paused == 1 else f"Its {paused} runs are paused."


def next_action(account: Account, *, pairs: bool) -> NextAction | None:
    """`pairs` where its transport wants a code to be scanned."""
    connect = NextAction(label="Pair it" if pairs else "Connect it", url="accounts:connect", icon="pairing")
    actions: Mapping[str, NextAction] = {
        AccountStatus.UNPAIRED: connect,
        AccountStatus.PAIRING: NextAction(
            label="Show the code", url="accounts:pair", icon="pairing", post=False
        ),
        AccountStatus.PAUSED: NextAction(label="Resume", url="accounts:resume", icon="play"),
        AccountStatus.OFFLINE: NextAction(label="Reconnect", url="accounts:connect", icon="retry"),
        AccountStatus.FLAGGED: NextAction(label="Reconnect", url="accounts:connect", icon="retry"),
    }
    return None if account.archived_at is not None else actions.get(account.status)
