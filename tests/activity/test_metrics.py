"""What Prometheus reads, and who may."""

import pytest
from django.test import Client
from prometheus_client.parser import text_string_to_metric_families
from pytest_django import Settings

from activity import counters
from tests.factories import FollowUpFactory, OperatorFactory, RecipientFactory, StaffFactory
from tests.reminders.conversation import reply, sent

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("redis")]


def read(client: Client, **headers: str) -> dict[tuple[str, ...], float]:
    text = client.get("/metrics", headers=headers).content.decode()
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_staff_and_who_has_the_token_read_it_and_nobody_else(client: Client, settings: Settings) -> None:
    assert client.get("/metrics").status_code == 403
    assert client.get("/metrics", headers={"Authorization": "Bearer "}).status_code == 403
    client.force_login(OperatorFactory.create())
    assert client.get("/metrics").status_code == 403
    client.force_login(StaffFactory.create())
    assert client.get("/metrics").status_code == 200
    client.logout()
    settings.METRICS_TOKEN = "a-long-token"
    assert client.get("/metrics", headers={"Authorization": "Bearer wrong"}).status_code == 403
    assert client.get("/metrics", headers={"Authorization": "Bearer a-long-token"}).status_code == 200


def test_the_queue_and_its_limits_are_gauges(client: Client) -> None:
    FollowUpFactory.create_batch(2)
    FollowUpFactory.create(on_its_way=True)
    RecipientFactory.create(cooling_down=True)
    client.force_login(StaffFactory.create())
    values = read(client)
    assert values["paceline_follow_ups", "queued"] == 2
    assert values["paceline_follow_ups", "sending"] == 1
    assert values["paceline_follow_up_queue_limit",] == 5000
    assert values["paceline_recipients_cooling_down",] == 1


def test_removals_are_counted_by_their_reason(client: Client) -> None:
    client.force_login(StaffFactory.create())
    counters.count("follow_ups_removed", 3, reason="opted out")
    counters.count("follow_ups_removed", 2, reason="opted out")
    counters.count("follow_ups_removed", reason="blocked")
    values = read(client)
    assert values["paceline_follow_ups_removed_total", "opted out"] == 5
    assert values["paceline_follow_ups_removed_total", "blocked"] == 1


@pytest.mark.django_db(transaction=True)
def test_replies_are_counted_by_what_they_brought(client: Client) -> None:
    client.force_login(StaffFactory.create())
    target = sent()
    for text in ("Hello", "And more", "STOP"):
        reply(target, text)
    values = read(client)
    assert [values["paceline_replies_total", why] for why in ("second message", "reply", "stop")] == [1, 1, 1]
