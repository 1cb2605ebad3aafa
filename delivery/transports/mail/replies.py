"""What a mail server's answer means for the message, by the step at which it came.

4xx is "later" and 5xx is final (RFC 5321), but for whom depends on the step: before the recipient is named, the
answer is about the account. 421, 450, 451 and 452 are how mail servers ask for less.
"""

import re
from enum import IntEnum

from delivery.outcomes import AccountBlocked, NotConnected, Outcome, RateLimited, Rejected, TryAgain, Unknown

# Without a login, with a wrong one, or from an address that is not the account's.
ABOUT_THE_SENDER = frozenset({530, 534, 535, 538, 550, 551, 553, 554})
# "4.2.2 mailbox full": the second number of 1 or 2 speaks of the recipient's mailbox (RFC 3463), not of our pace.
_ABOUT_THE_MAILBOX = re.compile(r"[45]\.[12]\.\d{1,3}\b")
_ENHANCED = re.compile(r"[245]\.\d{1,3}\.\d{1,3}\b")
_WAIT = re.compile(r"\bin (\d{1,5}) (second|minute)s?\b", re.IGNORECASE)


class Step(IntEnum):
    """How far the conversation got."""

    CONNECT = 1
    LOGIN = 2
    SENDER = 3
    RECIPIENT = 4
    DATA = 5  # from here on the message may have gone out


def outcome_of(step: Step, code: int, words: str) -> Outcome:
    """What a refusal means; `words` hold no secrets any more."""
    reason = f"the mail server answered {code}: {words}" if words else f"the mail server answered {code}"
    if not 400 <= code <= 599:
        return cut(step, reason="the answer of the mail server cannot be read")
    if code < 500:
        return _for_now(step, code, words, reason)
    if step <= Step.LOGIN or (step is Step.SENDER and code in ABOUT_THE_SENDER) or code in {530, 535}:
        return AccountBlocked(reason=reason)
    enhanced = _ENHANCED.match(words)
    return Rejected(reason=reason, code=f"{code} {enhanced[0]}" if enhanced else str(code))


def cut(step: Step, *, reason: str) -> TryAgain | Unknown:
    """What it means that no whole answer came."""
    return Unknown(reason=reason) if step is Step.DATA else TryAgain(reason=reason)


def _for_now(step: Step, code: int, words: str, reason: str) -> Outcome:
    if code == 421 or step in {Step.CONNECT, Step.SENDER}:
        return RateLimited(after=_wait(words), reason=reason)
    if step is Step.LOGIN:
        return NotConnected(reason=reason)  # 454: the server cannot check passwords at the moment
    if code in {450, 451, 452} and not _ABOUT_THE_MAILBOX.match(words):
        return RateLimited(after=_wait(words), reason=reason)
    return TryAgain(reason=reason)


def _wait(words: str) -> float | None:
    """The wait that greylisting servers name in their text."""
    found = _WAIT.search(words)
    return None if found is None else float(found[1]) * (60 if found[2].lower() == "minute" else 1)
