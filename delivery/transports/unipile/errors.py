"""Decides what Unipile's errors mean: each has a name of its own, `errors/<slug>`, beside the status."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta

from delivery.outcomes import AccountBlocked, NotConnected, Outcome, RateLimited, Rejected, Sent, TryAgain

A_DAY = timedelta(days=1).total_seconds()

# Errors with another meaning than their status; the reason is filled in.
SLUGS: Mapping[str, Outcome] = {
    # LinkedIn counts by the day and by the week: to ask again within the hour only draws attention.
    "limit_exceeded": RateLimited(after=A_DAY),
    # The account has no credits left for any recipient.
    "insufficient_credits": RateLimited(after=A_DAY),
    # This recipient, later: LinkedIn wants time between two invitations.
    "cannot_resend_yet": TryAgain(reason="", after=A_DAY),
    "cannot_resend_within_24hrs": TryAgain(reason="", after=A_DAY),
    # The wanted result exists already.
    "already_invited_recently": Sent(),
    "already_connected": Sent(),
    "action_already_performed": Sent(),
    # About the account, though the status says that it is about the message.
    "invalid_account": AccountBlocked(reason=""),
    "account_configuration_error": AccountBlocked(reason=""),
    "unauthorized": AccountBlocked(reason=""),
    "sender_rejected": AccountBlocked(reason=""),
    "send_as_denied": AccountBlocked(reason=""),
    "ip_rejected_by_server": AccountBlocked(reason=""),
    "provider_unreachable": NotConnected(),
    "realtime_client_not_initialized": NotConnected(),
    # About the message, though the status says that it is about the account.
    "resource_access_restricted": Rejected(reason="", code="resource_access_restricted"),
}

# Sentences for what an operator can do something about; Unipile's own words serve for the rest.
WORDS: Mapping[str, str] = {
    "insufficient_credits": "no InMail credits are left: buy more, or wait for the next month",
    "no_connection_with_recipient": "not connected with this person: send an invitation first, or an InMail",
    "not_allowed_inmail": "this account may not send InMails to this person",
    "limit_exceeded": "LinkedIn lets this account do no more of this for now",
    "cannot_resend_yet": "LinkedIn does not take another invitation to this person yet",
    "disconnected_account": "the account is disconnected: connect it again in Unipile's dashboard",
}


def slug_of(kind: str) -> str:
    return kind.removeprefix("errors/")


def outcome_of(slug: str, reason: str) -> Outcome | None:
    """Return the outcome of the slug; None where the status is enough."""
    known = SLUGS.get(slug)
    return known if known is None or isinstance(known, Sent) else replace(known, reason=reason)
