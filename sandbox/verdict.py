"""Decides the result of a request at the moment it is received, before any latency."""

from dataclasses import dataclass
from enum import StrEnum
from math import ceil

from sandbox.account import MINUTE, Account, State

NEVER_ANSWERED = 0


class Fault(StrEnum):
    """The way in which an answer is broken."""

    NONE = ""
    HANG = "hang"
    CUT = "cut"
    GARBAGE = "garbage"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The answer's status, and whether the message reaches its recipient whatever the answer says."""

    status: int
    error: str = ""
    delivers: bool = False
    fault: Fault = Fault.NONE
    retry_after: int = 0  # seconds
    reason: str = ""


ACCEPTED = Verdict(status=201, delivers=True)
NEW_CHATS_USED_UP = Verdict(
    status=422, error="new_chats_used_up", reason="The account may open no more new chats for now (475)."
)


def of_message(account: Account, *, to: str, media_known: bool, at: int, problem: str = "") -> Verdict:
    """Return the verdict on one message; the account has counted it already. `problem` is the one with its file."""
    return (
        _unable(account)
        or _too_many(account, at)
        or _unlucky_before(account)
        or _without_file(problem)
        or _refused(account, to, media_known=media_known)
        or _unlucky_after(account)
        or ACCEPTED
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Later:
    """The report of an account on a message after it took it, and whether the message reached its recipient."""

    state: str
    reason: str
    delivers: bool = False


NOT_FETCHED = Later(state="failed", reason="The file could not be fetched from its address.")


def of_later(account: Account) -> Later | None:
    """Return what is reported later of a message that was taken; None where nothing goes wrong."""
    behaviour = account.behaviour
    if _thrown(account, behaviour.bounce):
        return Later(state="bounced", reason="550 5.1.1 Nobody is at this address.")
    if _thrown(account, behaviour.fail_late):
        return Later(state="failed", reason="The message could not be delivered.")
    if _thrown(account, behaviour.complain):
        return Later(state="complained", reason="The recipient reported the message.", delivers=True)
    return None


def of_upload(account: Account) -> Verdict:
    """Return the verdict on one media upload."""
    return _unable(account) or _unlucky_before(account) or _unlucky_after(account) or ACCEPTED


def _unable(account: Account) -> Verdict | None:
    if account.state is State.BANNED:
        return Verdict(
            status=403, error="account_banned", reason="The account was banned for sending too fast."
        )
    if account.state is not State.WORKING or account.behaviour.not_connected:
        return Verdict(status=503, error="not_connected", reason="The phone of the account is not connected.")
    return None


def _too_many(account: Account, at: int) -> Verdict | None:
    limit = account.behaviour.rate_limit
    if not limit or not account.accepted.reaches(limit, MINUTE, at):
        return None
    wait = max(1, ceil((account.accepted.room_at(limit, MINUTE) - at) / 1000))
    return Verdict(status=429, error="rate_limited", retry_after=wait, reason="Too many messages per minute.")


def _unlucky_before(account: Account) -> Verdict | None:
    if _thrown(account, account.behaviour.error_rate):
        return Verdict(status=500, error="try_again", reason="The message was not accepted.")
    return None


def _without_file(problem: str) -> Verdict | None:
    return Verdict(status=424, error="file_not_fetched", reason=problem) if problem else None


def _refused(account: Account, to: str, *, media_known: bool) -> Verdict | None:
    if to in account.behaviour.unknown:
        return Verdict(status=404, error="unknown_recipient", reason="There is no such recipient.")
    if to in account.behaviour.reject:
        return Verdict(status=422, error="rejected", reason="The recipient does not accept messages.")
    if not media_known:
        return Verdict(
            status=422, error="unknown_media", reason="No such media was uploaded by this account."
        )
    return None


def _unlucky_after(account: Account) -> Verdict | None:
    behaviour = account.behaviour
    if _thrown(account, behaviour.hang):
        return Verdict(status=NEVER_ANSWERED, delivers=behaviour.hang_delivers, fault=Fault.HANG)
    if _thrown(account, behaviour.error_rate_after):
        return Verdict(status=500, error="internal", delivers=True, reason="Something broke after accepting.")
    if _thrown(account, behaviour.cut):
        return Verdict(status=201, delivers=True, fault=Fault.CUT)
    if _thrown(account, behaviour.garbage):
        return Verdict(status=200, delivers=True, fault=Fault.GARBAGE)
    return None


def _thrown(account: Account, rate: float) -> bool:
    return rate > 0 and account.dice.random() < rate
