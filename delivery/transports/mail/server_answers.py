"""Decides what a mail server's answer means for the message, by the step at which it came.

4xx is "later" and 5xx is final (RFC 5321), but for whom depends on the step: before the recipient is named, the
answer is about the account; from then on about the recipient, unless its words say that we send too much or that the
server itself has trouble. A server that greylists a recipient takes the same message some minutes later.
"""

import re
from enum import IntEnum

from delivery.outcomes import (
    AccountBlocked,
    NotConnected,
    Outcome,
    RateLimited,
    Rejected,
    ServerError,
    TryAgain,
    Unknown,
    Unreachable,
)

# Without a login, with a wrong one, or from an address that is not the account's.
ABOUT_THE_SENDER = frozenset({530, 534, 535, 538, 550, 551, 553, 554})
# No such mailbox, or it is closed, full, or takes no mail of this size.
ABOUT_A_MAILBOX = frozenset({"5.1.1", "5.2.1", "5.2.2", "5.2.3"})
# The second number says what it is about (RFC 3463): 1 and 2 the recipient's mailbox, as in "4.2.2 mailbox full",
# 3 the mail system itself, 7 a policy.
_ABOUT_THE_MAILBOX = re.compile(r"4\.[12]\.\d{1,3}\b")
_ABOUT_THE_SYSTEM = re.compile(r"4\.3\.\d{1,3}\b")
_ABOUT_POLICY = re.compile(r"4\.7\.\d{1,3}\b")
_GREYLISTED = re.compile(r"gr[ea]y-?\s?list", re.IGNORECASE)
_TOO_MUCH = re.compile(r"\btoo (?:many|much|fast)\b|\brate\b|throttl|slow down|\blimit", re.IGNORECASE)
_ENHANCED = re.compile(r"[245]\.\d{1,3}\.\d{1,3}\b")
# A full mailbox, in words alone: "452 Mailbox size limit exceeded" is not about how much we send.
_MAILBOX_FULL = re.compile(r"\b(?:mail|in)?box\b|\b(?:over|disk) ?quota\b", re.IGNORECASE)
# "550 5.4.5 Daily user sending quota exceeded": some servers refuse for good what they refuse for today.
_SENT_TOO_MUCH = re.compile(
    r"\b(?:daily|hourly|sending|submission|outgoing|outbound)[\w -]{0,40}(?:quota|limit|rate)"
    r"|\btoo many (?:messages|e-?mails)\b|\btoo much mail\b",
    re.IGNORECASE,
)
_WAIT = re.compile(r"\b(?:in|for|after) (\d{1,5}) (second|minute)s?\b", re.IGNORECASE)


class Step(IntEnum):
    """The steps of the conversation with the server."""

    CONNECT = 1
    LOGIN = 2
    SENDER = 3
    RECIPIENT = 4
    DATA = 5  # from here on the message may have gone out


def outcome_of(step: Step, code: int, words: str) -> Outcome:
    """Return the outcome of a refusal; secrets are already removed from `words`."""
    reason = f"the mail server answered {code}: {words}" if words else f"the mail server answered {code}"
    if not 400 <= code <= 599:
        return cut(step, reason="the answer of the mail server cannot be read")
    if code < 500:
        return _for_now(step, code, words, reason)
    if step <= Step.LOGIN or (step is Step.SENDER and code in ABOUT_THE_SENDER) or code in {530, 535}:
        return AccountBlocked(reason=reason)
    enhanced = _ENHANCED.match(words)
    if _SENT_TOO_MUCH.search(words) and not (enhanced and enhanced[0] in ABOUT_A_MAILBOX):
        return RateLimited(after=_wait(words), reason=reason)
    return Rejected(reason=reason, code=f"{code} {enhanced[0]}" if enhanced else str(code))


def cut(step: Step, *, reason: str) -> Unreachable | ServerError | Unknown:
    """Return the outcome where no whole answer came."""
    if step is Step.DATA:
        return Unknown(reason=reason)
    # A server that closes the connection after the recipient was named may mean this one message.
    return Unreachable(reason=reason) if step <= Step.LOGIN else ServerError(reason=reason)


def _for_now(step: Step, code: int, words: str, reason: str) -> Outcome:
    """Return the outcome of a 4xx: trouble of the account, of the server, or of this recipient."""
    if step is Step.LOGIN:
        return NotConnected(reason=reason)  # 454: the server cannot check passwords at the moment
    named = step >= Step.RECIPIENT
    full = code != 421 and not _ENHANCED.match(words) and _MAILBOX_FULL.search(words)
    if named and (_ABOUT_THE_MAILBOX.match(words) or _GREYLISTED.search(words) or full):
        return TryAgain(after=_wait(words), reason=reason)
    if _TOO_MUCH.search(words) or (_ABOUT_POLICY.match(words) and (code == 421 or not named)):
        return RateLimited(after=_wait(words), reason=reason)
    if code == 421 or not named:
        return ServerError(after=_wait(words), reason=reason, everybody=True)
    if _ABOUT_THE_SYSTEM.match(words):
        return ServerError(after=_wait(words), reason=reason)
    return TryAgain(after=_wait(words), reason=reason)


def _wait(words: str) -> float | None:
    """Return the wait that a greylisting server names in its text."""
    found = _WAIT.search(words)
    return None if found is None else float(found[1]) * (60 if found[2].lower() == "minute" else 1)
