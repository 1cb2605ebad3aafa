"""The ready profiles, as they hold for an account that picked one and changed nothing (SPEC P12)."""

from typing import Any

import pytest
from django.core.exceptions import ValidationError
from pytest_django import Settings

from accounts.models import Account, Limit, User
from accounts.models.account import Channel
from accounts.profiles import BUSINESS_HOURS, DEFAULT_PROFILE, PRESELECTED, PROFILES
from delivery.limits.effective import Source
from delivery.limits.lookup import explained_limits
from tests.factories import AccountFactory, LimitFactory

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("profile", "action", "expected"),
    [
        ("whatsapp_established", "message", {"per_minute": 40, "per_day": 2000}),
        ("whatsapp_careful", "message", {"gap_min": 30, "gap_max": 60, "per_day": 20}),
        (
            "whatsapp_campaign",
            "message",
            {"gap_min": 3, "gap_max": 3, "batch_size": 75, "batch_pause": 30, "per_day": 1000},
        ),
        ("email_business", "email", {"per_day": 20, "gap_min": 360, "gap_max": 1200}),
        ("matrix", "message", {"per_minute": 20, "per_day": 2000}),
        ("slow_sender", "message", {"gap_min": 180, "gap_max": 300, "per_hour": 10, "per_day": 50}),
        ("slow_sender", "email", {"gap_min": 180, "gap_max": 300, "per_hour": 10, "per_day": 50}),
        (
            "slow_sender",
            "connection_request",
            {"gap_min": 180, "gap_max": 300, "per_hour": 10, "per_day": 50},
        ),
        ("slow_sender", "inmail", {"gap_min": 180, "gap_max": 300, "per_hour": 10, "per_day": 50}),
        ("email_newsletter", "email", {"per_minute": 60, "per_day": 10_000}),
        ("linkedin", "connection_request", {"per_day": 20, "per_7_days": 100}),
        ("linkedin", "message", {"per_day": 50}),
    ],
)
def test_what_a_profile_means(owner: User, profile: str, action: str, expected: dict[str, Any]) -> None:
    account = AccountFactory.create(owner=owner, profile=profile, as_before=False)
    limits = explained_limits(account, action).limits
    assert {name: getattr(limits, name) for name in expected} == expected


@pytest.mark.parametrize(
    ("profile", "action", "expected"),
    [
        ("whatsapp_established", "message", {"per_minute": 40, "per_day": None}),
        ("whatsapp_campaign", "message", {"gap_min": 3, "batch_size": 75, "per_day": None}),
        ("email_business", "email", {"per_day": 20, "gap_min": 300, "gap_max": 1200}),
        ("linkedin", "connection_request", {"per_day": 20, "per_7_days": None}),
        ("linkedin", "message", {"per_day": 50}),
    ],
)
def test_an_account_of_before_keeps_what_it_had(
    owner: User, profile: str, action: str, expected: dict[str, Any]
) -> None:
    account = AccountFactory.create(owner=owner, profile=profile, as_before=True)
    limits = explained_limits(account, action).limits
    assert {name: getattr(limits, name) for name in expected} == expected


def test_a_new_account_is_careful_until_somebody_chooses_otherwise() -> None:
    assert (Account().profile, Account().as_before) == ("whatsapp_careful", False)
    assert set(PRESELECTED) == set(Channel.values)
    assert all(
        channel in PROFILES[key].channels or not PROFILES[key].channels
        for channel, key in PRESELECTED.items()
    )


def test_a_row_of_the_release_before_has_the_limits_that_it_knows(owner: User) -> None:
    account = AccountFactory.create(owner=owner)
    Account.objects.filter(pk=account.pk).update(as_before=Account._meta.get_field("as_before").db_default)
    account.refresh_from_db()
    assert account.as_before


def test_a_campaign_leaves_two_seconds_whatever_its_own_gap_is(owner: User) -> None:
    account = AccountFactory.create(owner=owner, profile="whatsapp_campaign")
    LimitFactory.create(account=account, gap_min=0.5, gap_max=1)
    limits = explained_limits(account, "message").limits
    assert (limits.gap_min, limits.gap_max) == (2, 2)


@pytest.mark.parametrize(
    ("channel", "name", "value", "said"),
    [
        ("whatsapp", "per_minute", 500, "At most 60 per minute"),
        ("whatsapp", "per_minute", 60, ""),
        ("whatsapp", "per_day", 10_001, "At most 10,000 per day"),
        ("linkedin", "per_day", 151, "LINKEDIN_MOST_PER_DAY"),
        ("matrix", "per_day", 1_000_000, ""),
    ],
)
def test_a_limit_beyond_what_the_installation_allows_is_refused(
    owner: User, channel: str, name: str, value: int, said: str
) -> None:
    account = AccountFactory.create(owner=owner, channel=channel, transport="waha")
    limit = Limit(account=account, action="message", **{name: value})
    if not said:
        limit.clean()
        return
    with pytest.raises(ValidationError) as refused:
        limit.clean()
    assert said in " ".join(refused.value.message_dict[name])


def test_a_ceiling_that_staff_lower_holds_at_once(owner: User, settings: Settings) -> None:
    account = AccountFactory.create(owner=owner, transport="waha")
    LimitFactory.create(account=account, per_minute=50)
    settings.CEILINGS = {"whatsapp": {"per_minute": 20, "per_day": 500}}
    found = explained_limits(account, "message")
    assert (found.limits.per_minute, found.limits.per_day) == (20, 500)
    assert found.sources["per_minute"] is Source.CEILING


def test_nothing_leaves_the_sandbox_so_it_has_no_ceiling(owner: User) -> None:
    Limit(account=AccountFactory.create(owner=owner), per_minute=60_000).clean()


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
