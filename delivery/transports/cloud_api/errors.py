"""Decides what the error codes of WhatsApp's Cloud API mean for a message, as Meta documents them.

https://developers.facebook.com/docs/whatsapp/cloud-api/support/error-codes. The HTTP status beside a code says
little: a spam block and a wrong template both come with 400.
"""

from collections.abc import Mapping

from delivery.outcomes import (
    AccountBlocked,
    NotConnected,
    Outcome,
    RateLimited,
    Rejected,
    ServerError,
    TryAgain,
)

# The number as a whole sends too fast: later, and more slowly.
TOO_FAST = frozenset({4, 80007, 130429, 131016, 133016})
# Nothing goes out until a person has looked: spam signals, policy, payment, a lock, a token, permissions.
STOPS_THE_ACCOUNT = frozenset({0, 3, 10, 190, 368, 131005, 131031, 131042, 131048, *range(200, 300)})
# The number is not registered, or being moved or maintained.
NOT_READY = frozenset({131045, 131057, 133000, 133004, 133005, 133006, 133010, 133015})
PASSING = frozenset({1, 2, 131000})

# Whatever the status says: it is never sent with this template as it is.
ABOUT_THE_TEMPLATE = range(132_000, 133_000)

# Seconds that only this recipient has to wait.
RECIPIENT_WAITS: Mapping[int, float] = {
    131056: 6.0,  # too many messages from this number to this person
    131049: 86_400.0,  # Meta keeps it back to keep people engaged; sooner makes it worse
}
# Clearer sentences than Meta's for problems that an operator can fix.
ADVICE: Mapping[int, str] = {
    131047: (
        "more than 24 hours have passed since this person last wrote, and then WhatsApp takes only templates; "
        "enter an approved template on the account"
    ),
    131026: "this person cannot be reached: not on WhatsApp, or on an old version of it",
    131030: "this number is not among those that a test account may write to; add it in Meta's console",
    131050: "this person does not want marketing messages from you",
    130497: "this account may not write to people in this country",
    132000: "the template has another number of variables; it needs exactly one, the message",
    132001: "there is no approved template with this name in this language",
    132005: "the message is too long for the template",
    132007: "the template breaks Meta's rules for its content",
    132012: "the template's variable has another format; it needs one text, the message",
    132015: "the template is paused, because people marked it as unwanted",
    132016: "the template is disabled for good, because people marked it as unwanted",
}


_KINDS: Mapping[int, type[RateLimited | AccountBlocked | NotConnected | ServerError]] = {
    **dict.fromkeys(TOO_FAST, RateLimited),
    **dict.fromkeys(STOPS_THE_ACCOUNT, AccountBlocked),
    **dict.fromkeys(NOT_READY, NotConnected),
    **dict.fromkeys(PASSING, ServerError),
}


def outcome(code: int, said: str) -> Outcome | None:
    """Return the outcome of the code; None where only the status can tell. `said` is Meta's own sentence."""
    if code in RECIPIENT_WAITS:
        return TryAgain(reason=said, after=RECIPIENT_WAITS[code])
    if code in ADVICE or code in ABOUT_THE_TEMPLATE:
        return Rejected(reason=ADVICE.get(code, said), code=str(code))
    kind = _KINDS.get(code)
    return kind(reason=said) if kind is not None else None
