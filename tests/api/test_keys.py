"""Keys: what is stored of them, who finds one, and when one stops working."""

from datetime import UTC, datetime, timedelta

import pytest
from django.core.exceptions import PermissionDenied
from django.utils import timezone

from accounts.models import User
from api import keys
from api.models import ApiKey
from api.scopes import Scope
from tests.factories import ApiKeyFactory


def test_nothing_stored_opens_anything(owner: User) -> None:
    issued = keys.issue(owner, name="CRM", scopes=[Scope.READ])
    stored = ApiKey.objects.values().get()
    secret = issued.secret.rpartition("_")[2]
    assert not any(secret in str(value) for value in stored.values())
    assert issued.secret.startswith(f"paceline_{issued.key.prefix}_")


def test_a_key_is_found_by_its_secret_and_by_nothing_else(owner: User) -> None:
    issued = keys.issue(owner, name="CRM", scopes=[Scope.READ])
    now = timezone.now()
    assert keys.find(issued.secret, now=now) == issued.key
    wrong = issued.secret[:-1] + ("A" if issued.secret[-1] != "A" else "B")
    for secret in ("", wrong, issued.key.digest, issued.secret + "x", "paceline_\N{GRINNING FACE}"):
        assert keys.find(secret, now=now) is None


def test_a_key_ends_on_its_last_moment_by_revoking_and_with_its_person(owner: User) -> None:
    now = timezone.now()
    ending = keys.issue(owner, name="a", scopes=[Scope.READ], ends_at=now + timedelta(hours=1))
    revoked = keys.issue(owner, name="b", scopes=[Scope.READ])
    keys.revoke(revoked.key, by=owner)
    left = keys.issue(owner, name="c", scopes=[Scope.READ])
    assert keys.find(ending.secret, now=now)
    assert keys.find(ending.secret, now=now + timedelta(hours=1)) is None
    assert keys.find(revoked.secret, now=now) is None
    User.objects.filter(pk=owner.pk).update(is_active=False)
    assert keys.find(left.secret, now=now) is None


def test_only_its_person_and_staff_revoke_a_key(owner: User, mate: User, staff: User) -> None:
    key = ApiKeyFactory.create(person=owner)
    with pytest.raises(PermissionDenied):
        keys.revoke(key, by=mate)
    keys.revoke(key, by=staff)
    key.refresh_from_db()
    assert key.revoked_at is not None


def test_use_is_noted_once_a_minute_and_at_once_from_another_address(owner: User) -> None:
    key, now = ApiKeyFactory.create(person=owner), timezone.now()
    noted = []
    for seconds, address in ((0, "192.0.2.1"), (30, "192.0.2.1"), (40, "192.0.2.2"), (110, "192.0.2.2")):
        keys.note_use(key, address=address, now=now + timedelta(seconds=seconds))
        key.refresh_from_db()
        assert key.used_at is not None
        noted.append((round((key.used_at - now).total_seconds()), key.used_from))
    assert noted == [(0, "192.0.2.1"), (0, "192.0.2.1"), (40, "192.0.2.2"), (110, "192.0.2.2")]


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"name": "  "}, "Enter a name"),
        ({"scopes": []}, "Choose at least one"),
        ({"ends_at": timezone.now() - timedelta(days=1)}, "in the past"),
        ({"ends_at": datetime(9999, 12, 31, 23, 59, tzinfo=UTC)}, "too far away"),
    ],
)
def test_a_key_that_makes_no_sense_is_refused(owner: User, wrong: dict[str, object], told: str) -> None:
    given: dict[str, object] = {"name": "CRM", "scopes": [Scope.READ], "ends_at": None, **wrong}
    with pytest.raises(keys.BadKeyError, match=told):
        keys.issue(owner, **given)  # type: ignore[arg-type]  # wrong on purpose


def test_a_person_has_at_most_fifty_keys_that_work(owner: User) -> None:
    ApiKeyFactory.create_batch(keys.MOST - 1, person=owner)
    ApiKeyFactory.create_batch(3, person=owner, revoked=True)
    keys.issue(owner, name="the last one", scopes=[Scope.READ])
    with pytest.raises(keys.BadKeyError, match="Revoke one first"):
        keys.issue(owner, name="too many", scopes=[Scope.READ])
