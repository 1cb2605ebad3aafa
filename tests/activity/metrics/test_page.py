"""The metrics that Prometheus reads, and who may read them."""

import re
from datetime import timedelta

import pytest
from django.conf import settings as django_settings
from django.test import Client
from django.utils import timezone
from prometheus_client.parser import text_string_to_metric_families
from pytest_django import DjangoCaptureOnCommitCallbacks, Settings
from structlog.testing import capture_logs

from accounts.models import Recipient
from activity import counters
from reminders.follow_ups import hygiene
from tests.factories import AccountFactory, FollowUpFactory, OperatorFactory, RecipientFactory, StaffFactory
from tests.reminders.conversations.conversation import hear, reply, sent

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


@pytest.mark.django_db(transaction=True)
def test_what_comes_from_nobody_we_know_is_counted_too(client: Client) -> None:
    client.force_login(StaffFactory.create())
    hear(AccountFactory.create(), "STOP", chat="60199999999@c.us")
    assert read(client)["paceline_replies_total", "not a recipient"] == 1


@pytest.mark.django_db(transaction=True)
def test_a_second_message_is_counted_with_why_it_was_not_sent(client: Client) -> None:
    client.force_login(StaffFactory.create())
    target = sent()
    for _ in range(2):
        reply(target)
    blocked = sent()
    Recipient.objects.filter(pk=blocked.recipient_id).update(blocked_at=blocked.settled_at)
    reply(blocked)
    reply(sent(second_message_hours=0.1, at=timezone.now() - timedelta(hours=1)))
    values = read(client)
    reasons = ("planned", "had it already", "blocked", "too late")
    assert [values["paceline_second_messages_total", why] for why in reasons] == [1, 1, 1, 1]


@pytest.mark.django_db(transaction=True)
def test_cooldowns_are_counted_by_how_they_begin_and_end(client: Client) -> None:
    client.force_login(StaffFactory.create())
    stuck, resting = FollowUpFactory.create(), sent(second=0)
    Recipient.objects.filter(pk=stuck.recipient_id).update(attempts=3)
    hygiene.clean()
    Recipient.objects.filter(pk=resting.recipient_id).update(cooldown_until=timezone.now())
    reply(resting)
    hygiene.end_cooldowns(now=timezone.now() + timedelta(days=3))
    values = read(client)
    assert [values["paceline_cooldowns_total", why] for why in ("started", "replied", "expired")] == [1, 1, 1]


def test_the_log_has_the_same_name_and_reason(
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
) -> None:
    with capture_logs() as lines, django_capture_on_commit_callbacks(execute=True):
        counters.tell("replies", reason="stop", recipient=7)
        counters.tell("cooldowns", reason="expired", number=0)
    told = {"event": "replies", "reason": "stop", "number": 1, "recipient": 7, "log_level": "info"}
    assert lines == [told]


def test_every_event_that_is_told_is_in_the_documents() -> None:
    """Told by its name, or gathered under it first."""
    root = django_settings.BASE_DIR
    apps = ("accounts", "activity", "delivery", "reminders")
    sources = [path for app in apps for path in (root / app).rglob("*.py")]
    told = {
        name
        for path in sources
        for name in re.findall(r'(?:counters\.tell\(|happened\[)\s*"(\w+)"', path.read_text())
    }
    documented = (root / "docs/conversations.md").read_text()
    assert len(told) > 8
    assert [name for name in sorted(told) if f"`paceline_{name}_total`" not in documented] == []
