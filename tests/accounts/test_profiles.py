"""The ready profiles, as they hold for an account that picked one and changed nothing (SPEC P12)."""

from typing import Any

import pytest

from accounts.models import User
from accounts.profiles import BUSINESS_HOURS, DEFAULT_PROFILE, PROFILES
from delivery.limits.effective import Source
from delivery.limits.lookup import explained_limits
from tests.factories import AccountFactory, LimitFactory

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("profile", "action", "expected"),
    [
        ("whatsapp_established", "message", {"per_minute": 40}),
        ("whatsapp_careful", "message", {"gap_min": 30, "gap_max": 60, "per_day": 20}),
        (
            "whatsapp_campaign",
            "message",
            {"gap_min": 3, "gap_max": 3, "batch_size": 75, "batch_pause": 30},
        ),
        ("email_business", "email", {"per_day": 20, "gap_min": 300, "gap_max": 1200}),
        ("slow_sender", "message", {"gap_min": 180, "gap_max": 300, "per_hour": 10, "per_day": 50}),
        ("slow_sender", "email", {"gap_min": 180, "gap_max": 300, "per_hour": 10, "per_day": 50}),
        (
            "slow_sender",
            "connection_request",
            {"gap_min": 180, "gap_max": 300, "per_hour": 10, "per_day": 50},
        ),
        ("slow_sender", "inmail", {"gap_min": 180, "gap_max": 300, "per_hour": 10, "per_day": 50}),
        ("email_newsletter", "email", {"per_minute": 60, "per_day": 10_000}),
        ("linkedin", "connection_request", {"per_day": 20}),
        ("linkedin", "message", {"per_day": 50}),
    ],
)
def test_what_a_profile_means(owner: User, profile: str, action: str, expected: dict[str, Any]) -> None:
    limits = explained_limits(AccountFactory.create(owner=owner, profile=profile), action).limits
    assert {name: getattr(limits, name) for name in expected} == expected


def test_every_number_says_where_it_comes_from(owner: User) -> None:
    account = AccountFactory.create(owner=owner, profile="whatsapp_careful")
    LimitFactory.create(account=account, per_minute=None, per_hour=50)
    assert explained_limits(account, "message").sources == {
        "per_minute": Source.SETTINGS,
        "per_hour": Source.ACCOUNT,
        "per_day": Source.WARM_UP,
        "gap_min": Source.PROFILE,
        "gap_max": Source.PROFILE,
    }


def test_business_accounts_suggest_business_hours() -> None:
    assert {key for key, profile in PROFILES.items() if profile.hours == BUSINESS_HOURS} == {
        "email_business",
        "linkedin",
    }
    assert PROFILES[DEFAULT_PROFILE].hours is None
