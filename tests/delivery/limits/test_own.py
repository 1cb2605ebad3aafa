"""An account's own limits: those far above the profile's are warned of."""

import pytest
from django.test import Client
from django.urls import reverse

from accounts.models import Account, User
from delivery.limits.lookup import merged
from delivery.limits.own import far_above
from tests.factories import AccountFactory, LimitFactory

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("redis")]


def usual(account: Account) -> int:
    found = merged(account, "message", None).limits.per_minute
    assert found is not None
    return found


@pytest.mark.parametrize(("times", "warnings"), [(1, 0), (2, 0), (3, 1)])
def test_more_than_twice_the_profile_is_far(owner: User, times: int, warnings: int) -> None:
    account = AccountFactory.create(owner=owner)
    limit = LimitFactory.create(account=account, per_minute=times * usual(account))
    found = far_above(limit)
    assert len(found) == warnings
    assert all("per minute is far above" in each for each in found)


def test_a_limit_that_the_profile_does_not_have_is_never_far_above(owner: User) -> None:
    account = AccountFactory.create(owner=owner)
    assert far_above(LimitFactory.create(account=account, per_minute=None, gap_min=1, gap_max=2)) == []


def test_the_page_warns_when_it_saves(client: Client, owner: User) -> None:
    account = AccountFactory.create(owner=owner)
    client.force_login(owner)
    typed = {"message-per_minute": str(usual(account) * 3)}
    page = client.post(reverse("accounts:limits", args=[account.pk]), typed, follow=True).content.decode()
    assert "is far above the" in page or "at most" in page


@pytest.mark.parametrize(("gap", "refused"), [(2, False), (10, False), (10.5, True), (30, True)])
def test_a_campaign_keeps_its_gap_within_ten_seconds_and_the_form_says_what_to_do(
    client: Client, owner: User, gap: float, refused: bool
) -> None:
    account = AccountFactory.create(owner=owner, profile="whatsapp_campaign")
    client.force_login(owner)
    typed = {"message-gap_min": "2", "message-gap_max": str(gap)}
    answer = client.post(reverse("accounts:limits", args=[account.pk]), typed)
    assert (answer.status_code == 200) is refused
    if refused:
        assert "choose another profile" in answer.content.decode()
