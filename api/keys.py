"""Makes, finds and revokes keys.

A key is `paceline_<prefix>_<secret>`. The secret has 256 random bits, so that one round of SHA-256 is enough to store
it: there is nothing to guess, and a request costs no slow hash.
"""

import hashlib
import re
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from hmac import compare_digest

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from accounts.models import Role, User
from accounts.roles import require_touch
from api.models import ApiKey
from api.scopes import Scope
from audit.record import record

MOST = 50  # keys of one person that still work
LAST_YEAR = (
    9000  # an end in the last hours of 9999 is in the year 10000 in another zone, which cannot be read
)
SHAPE = re.compile(r"paceline_([0-9a-f]{12})_[A-Za-z0-9_-]{43}")
NOTED_EVERY = timedelta(minutes=1)


class BadKeyError(ValueError):
    """The key cannot be made like this. The text says why, and what to do."""


@dataclass(frozen=True, slots=True)
class Issued:
    """A new key and its secret, which nobody can read again."""

    key: ApiKey
    secret: str


@transaction.atomic
def issue(person: User, *, name: str, scopes: Iterable[Scope], ends_at: datetime | None = None) -> Issued:
    """Make a key for the person, and return it with its secret."""
    User.objects.select_for_update(no_key=True).get(pk=person.pk)  # two requests at once stay below `MOST`
    name, chosen = " ".join(name.replace("\0", "").split())[:80], sorted({Scope(scope) for scope in scopes})
    _require_possible(person, name, chosen, ends_at)
    prefix = secrets.token_hex(6)
    secret = f"paceline_{prefix}_{secrets.token_urlsafe(32)}"
    key = ApiKey.objects.create(
        person=person,
        name=name,
        prefix=prefix,
        digest=_digest(secret),
        scopes=[scope.value for scope in chosen],
        ends_at=ends_at,
    )
    record("key.made", key, after={"scopes": key.scopes, "ends_at": ends_at})
    return Issued(key, secret)


def find(secret: str, *, now: datetime) -> ApiKey | None:
    """Return the key with this secret if it can be used now, with its person; else None."""
    shape = SHAPE.fullmatch(secret)
    if shape is None:
        return None
    key = ApiKey.objects.select_related("person").filter(prefix=shape[1], person__is_active=True).first()
    if key is None or not compare_digest(key.digest, _digest(secret)):
        return None
    return key if works(key, now) else None


def works(key: ApiKey, now: datetime) -> bool:
    """Decide whether a key can still be used."""
    return key.revoked_at is None and (key.ends_at is None or key.ends_at > now)


def revoke(key: ApiKey, *, by: User) -> None:
    """End the key at once: the next request with it is refused."""
    require_touch(key, by, Role.MANAGE)
    with transaction.atomic():
        if ApiKey.objects.filter(pk=key.pk, revoked_at=None).update(revoked_at=timezone.now()):
            record("key.revoked", key, by=by)


def note_use(key: ApiKey, *, address: str, now: datetime) -> None:
    """Note when and from where the key was used, at most once a minute for one address."""
    if key.used_from == address and key.used_at is not None and now - key.used_at < NOTED_EVERY:
        return
    ApiKey.objects.filter(pk=key.pk).update(used_at=now, used_from=address)


def _require_possible(person: User, name: str, scopes: list[Scope], ends_at: datetime | None) -> None:
    if not name:
        raise BadKeyError("Enter a name, such as the program that will use the key.")
    if not scopes:
        raise BadKeyError("Choose at least one thing that the key may do.")
    now = timezone.now()
    if ends_at is not None and ends_at <= now:
        raise BadKeyError("The end is in the past. Choose a later day.")
    if ends_at is not None and ends_at.year > LAST_YEAR:
        raise BadKeyError(f"The end is too far away. Choose a day before {LAST_YEAR + 1}, or none.")
    working = ApiKey.objects.filter(Q(ends_at=None) | Q(ends_at__gt=now), person=person, revoked_at=None)
    if working.count() >= MOST:
        raise BadKeyError(f"You have {MOST} keys that work. Revoke one first.")


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
