"""The admin pages of the ledger and of what people are told: nobody types there."""

import pytest
from django.test import Client
from django.urls import reverse

from accounts.models import User
from activity.models import PushSubscription
from tests.factories import (
    AttemptFactory,
    InboundFactory,
    NotificationFactory,
    PushSubscriptionFactory,
    RunTargetFactory,
    UserFactory,
)

pytestmark = pytest.mark.django_db

LEDGER = "admin:activity_attempt_changelist"


@pytest.fixture(autouse=True)
def _logged_in(client: Client) -> None:
    """Even those who may do everything else."""
    client.force_login(UserFactory.create(superuser=True))


def found(client: Client, **asked: str | int) -> list[object]:
    return list(client.get(reverse(LEDGER), asked).context["cl"].result_list)


@pytest.mark.parametrize("factory", [AttemptFactory, InboundFactory, NotificationFactory])
def test_what_happened_cannot_be_added_changed_or_deleted(
    client: Client, factory: type[AttemptFactory]
) -> None:
    row = factory.create()
    model = type(row)
    name = f"admin:activity_{model._meta.model_name}"
    before = model._default_manager.values().get()
    assert client.get(reverse(f"{name}_add")).status_code == 403
    assert client.post(reverse(f"{name}_change", args=[row.pk]), {"outcome": "rejected"}).status_code == 403
    assert client.post(reverse(f"{name}_delete", args=[row.pk]), {"post": "yes"}).status_code == 403
    everything = {"action": "delete_selected", "_selected_action": [row.pk], "post": "yes"}
    client.post(reverse(f"{name}_changelist"), everything)
    assert model._default_manager.values().get() == before


def test_the_ledger_is_found_by_number_and_by_run(client: Client) -> None:
    first, second = AttemptFactory.create(), AttemptFactory.create(test_send=True)
    assert found(client) == [second, first]
    assert found(client, q=second.pk) == [second]
    assert found(client, q=f"run {first.run_id}") == [first]
    assert found(client, target__id__exact=first.target_id or 0) == [first]


def test_the_ledger_is_filtered_by_outcome_within_a_run_alone(client: Client) -> None:
    target = RunTargetFactory.create()
    AttemptFactory.create(target=target)
    rejected = AttemptFactory.create(target=target, rejected=True)
    assert found(client, run__id__exact=target.run_id, outcome="rejected") == [rejected]
    assert len(found(client, outcome="rejected")) == 2


def test_the_ledger_of_an_account_follows_the_index_of_its_limits(client: Client) -> None:
    attempt = AttemptFactory.create()
    AttemptFactory.create()
    rows = client.get(reverse(LEDGER), {"account__id__exact": attempt.account_id}).context["cl"].queryset
    assert list(rows) == [attempt]
    assert rows.query.order_by[:2] == ("-action", "-at")


def test_the_keys_of_a_browser_are_not_shown_and_it_can_be_forgotten(client: Client, owner: User) -> None:
    browser = PushSubscriptionFactory.create(user=owner)
    url = reverse("admin:activity_pushsubscription_change", args=[browser.pk])
    page = client.get(url).content.decode()
    assert "push.example.com" in page
    assert browser.auth not in page
    assert browser.p256dh not in page
    assert browser.endpoint not in page
    client.post(reverse("admin:activity_pushsubscription_delete", args=[browser.pk]), {"post": "yes"})
    assert not PushSubscription.objects.exists()
