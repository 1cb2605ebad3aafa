"""Keeps each session of a service with one account: two accounts would send at twice its pace and mix up replies.

The credentials are encrypted, so an account carries a hash of the values that name its session. The database keeps
the hash unique among the accounts that are not archived, of all owners.
"""

import hashlib
from collections.abc import Mapping

from accounts.models import Account
from delivery.transports import kinds
from delivery.transports.base import CredentialField, CredentialsError
from delivery.transports.http.exchange import gateway_url

CONSTRAINT = "account_session_once"
TAKEN = "Another account already uses this session. Enter a different one."


def session_key(kind: str, credentials: Mapping[str, str]) -> str:
    """Return a hash of the session that the credentials name; '' where they do not name one."""
    transport = kinds().get(kind)
    fields = [field for field in transport.credential_fields if field.session] if transport else []
    values = [_plain(field, credentials.get(field.name, "")) for field in fields]
    if not values or not all(values):
        return ""
    return hashlib.sha256("\0".join([kind, *values]).encode(errors="replace")).hexdigest()


def _plain(field: CredentialField, value: str) -> str:
    """Return the value in the form that is compared: no slash at the end, lower case where case does not matter."""
    value = value.strip() or field.default
    if not field.place:
        return value
    try:
        return str(gateway_url(value, label=field.label)).rstrip("/")
    except CredentialsError:
        return ""


def why_taken(account: Account, credentials: Mapping[str, str], *, kind: str = "") -> str:
    """Return why the account cannot have this session, or ''. Another owner's account is not named.

    `kind` is the transport of an account that has none yet.
    """
    key = session_key(kind or account.transport, credentials)
    others = Account.objects.filter(session_key=key, archived_at=None).exclude(pk=account.pk)
    other = others.first() if key else None
    if other is None:
        return ""
    if other.owner_id == account.owner_id:
        return f"{other} already uses this session. Enter a different one, or use that account."
    return TAKEN


def enter(account: Account, credentials: Mapping[str, str]) -> tuple[str, ...]:
    """Set the account's credentials without saving; return the fields to save.

    The mark of an archived account stays with its session, else a new account would lift it (docs/decisions/0043).
    """
    before, account.credentials = account.session_key, dict(credentials)
    account.session_key = session_key(account.transport, credentials)
    if account.session_key in {"", before} or not _marked_before(account):
        return "credentials", "session_key"
    account.needs_approval = True
    return "credentials", "session_key", "needs_approval"


def _marked_before(account: Account) -> bool:
    same = Account.objects.filter(session_key=account.session_key, needs_approval=True)
    return same.exclude(pk=account.pk).exists()
