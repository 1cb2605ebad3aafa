"""A person's notifications: the list, the bell, and what marks them as read."""

from datetime import UTC, datetime
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from accounts.models import User
from activity.models import Notification, PushSubscription
from activity.notify import tell
from delivery import notifications
from delivery.models import Run
from delivery.states import PauseReason
from tests.factories import NotificationFactory, PushSubscriptionFactory, ReminderFactory, RunFactory

pytestmark = pytest.mark.django_db

LIST = "notifications:list"
NOON = datetime(2026, 3, 11, 12, tzinfo=UTC)
ENDPOINT = "https://fcm.googleapis.com/fcm/send/abc"
SUBSCRIPTION = {"endpoint": ENDPOINT, "keys": {"p256dh": "a-key", "auth": "a-secret"}}


def page(client: Client, user: User, name: str = LIST) -> str:
    client.force_login(user)
    return client.get(reverse(name)).content.decode()


def paused(owner: User, **counts: int) -> Run:
    reminder = ReminderFactory.create(owner=owner, name="Rent is due")
    return RunFactory.create(reminder=reminder, paused=True, **counts)


@pytest.mark.parametrize(
    ("state", "kind", "title", "body"),
    [
        (
            {"paused": True, "sent": 3, "pending": 7},
            "paused",
            "Reminder paused",
            "Rent: 3 of 10 groups delivered. Tap to resume or cancel.",
        ),
        (
            {"partial": True, "sent": 8, "failed": 2},
            "partial",
            "Reminder delivered in part",
            "Rent: 8 of 10 groups delivered. 2 failed.",
        ),
        (
            {
                "partial": True,
                "sent": 3,
                "failed": 0,
                "skipped": 7,
                "canceled_at": NOON,
                "canceled_by": "Ana",
            },
            "canceled",
            "Reminder canceled",
            "Rent: Canceled by Ana on 11 Mar, 12:00, 3 of 10 sent.",
        ),
        ({"success": True, "sent": 1}, "success", "Reminder delivered", "Rent: 1 of 1 group delivered."),
        (
            {"lost": True, "failed": 4},
            "failed",
            "Reminder not delivered",
            "Rent: 0 of 4 groups delivered. 4 failed.",
        ),
    ],
)
def test_what_became_of_a_run_is_told_in_words(
    owner: User, state: dict[str, Any], kind: str, title: str, body: str
) -> None:
    run = RunFactory.create(reminder=ReminderFactory.create(owner=owner, name="Rent"), **state)
    notifications.run_changed(run)
    notifications.run_changed(run)
    made = Notification.objects.get()
    assert (made.kind, made.title, made.body) == (kind, title, body)
    assert (made.owner, made.url, made.run_id) == (owner, f"/reminders/{run.reminder_id}/", run.pk)


@pytest.mark.parametrize("state", ["missed", "canceled"])
def test_a_skipped_or_canceled_run_is_no_news(owner: User, state: str) -> None:
    notifications.run_changed(
        RunFactory.create(reminder=ReminderFactory.create(owner=owner), **{state: True})
    )
    assert not Notification.objects.exists()


def test_the_same_news_is_told_once(owner: User) -> None:
    assert tell(owner.pk, Notification.Kind.MISSED, key="moment-1", title="Missed")
    assert not tell(owner.pk, Notification.Kind.MISSED, key="moment-1", title="Missed")


def test_the_bell_counts_what_is_unread(client: Client, owner: User, mate: User) -> None:
    NotificationFactory.create_batch(2, owner=owner)
    NotificationFactory.create(owner=owner, read=True)
    assert "data-unread>2<" in page(client, owner, "dashboard")
    assert "data-unread hidden>0<" in page(client, mate, "dashboard")


def test_the_bell_says_no_more_than_99(client: Client, owner: User) -> None:
    NotificationFactory.create_batch(101, owner=owner)
    assert "data-unread>99+<" in page(client, owner, "dashboard")


def test_the_list_is_for_its_owner_alone(
    client: Client, owner: User, mate: User, stranger: User, staff: User
) -> None:
    NotificationFactory.create(owner=owner, title="For the owner")
    assert "For the owner" in page(client, owner)
    for other in (mate, stranger, staff):
        assert "For the owner" not in page(client, other)


def test_a_visitor_is_asked_to_log_in(client: Client) -> None:
    assert client.get(reverse(LIST)).status_code == 302


def test_opening_one_marks_it_as_read_and_leads_to_its_page(client: Client, owner: User) -> None:
    made, other = NotificationFactory.create_batch(2, owner=owner, url="/reminders/7/")
    client.force_login(owner)
    answer = client.post(reverse("notifications:read", args=[made.pk]))
    assert answer["Location"] == "/reminders/7/"
    made.refresh_from_db()
    other.refresh_from_db()
    assert made.read_at is not None
    assert other.read_at is None


@pytest.mark.parametrize("url", ["https://elsewhere.example/", "//elsewhere.example/", ""])
def test_it_never_leads_to_another_site(client: Client, owner: User, url: str) -> None:
    made = NotificationFactory.create(owner=owner, url=url)
    client.force_login(owner)
    assert client.post(reverse("notifications:read", args=[made.pk]))["Location"] == reverse(LIST)


def test_nobody_marks_anothers_as_read(client: Client, owner: User, staff: User) -> None:
    made = NotificationFactory.create(owner=owner)
    client.force_login(staff)
    assert client.post(reverse("notifications:read", args=[made.pk])).status_code == 404
    client.post(reverse("notifications:read_all"))
    made.refresh_from_db()
    assert made.read_at is None


def test_all_are_marked_as_read_at_once(client: Client, owner: User) -> None:
    NotificationFactory.create_batch(3, owner=owner)
    client.force_login(owner)
    client.post(reverse("notifications:read_all"))
    assert not Notification.objects.filter(read_at=None).exists()


def test_news_of_a_pause_offers_resume_and_cancel_while_it_lasts(client: Client, owner: User) -> None:
    run = paused(owner, sent=3, pending=7)
    notifications.run_changed(run)
    assert f'value="resume {run.pk}"' in page(client, owner)
    Run.objects.filter(pk=run.pk).update(status="running", pause_reason="")
    assert f'value="resume {run.pk}"' not in page(client, owner)


def test_a_page_takes_the_same_queries_for_more_news(
    client: Client, owner: User, django_assert_num_queries: object
) -> None:
    client.force_login(owner)
    for _ in range(5):
        notifications.run_changed(paused(owner, sent=3, pending=7))
    with django_assert_num_queries(7):  # type: ignore[operator]
        client.get(reverse(LIST))


class TestABrowser:
    def post(self, client: Client, name: str, said: object) -> int:
        return client.post(reverse(name), said, content_type="application/json").status_code

    def test_subscribes_once_and_follows_its_person(
        self, client: Client, owner: User, stranger: User
    ) -> None:
        for person in (stranger, owner, owner):
            client.force_login(person)
            assert self.post(client, "notifications:subscribe", SUBSCRIPTION) == 201
        browser = PushSubscription.objects.get()
        assert (browser.user, browser.endpoint, browser.p256dh, browser.auth) == (
            owner,
            ENDPOINT,
            "a-key",
            "a-secret",
        )

    @pytest.mark.parametrize(
        "said",
        [
            {},
            [],
            "x",
            SUBSCRIPTION | {"endpoint": "https://fcm.googleapis.com:99999/x"},
            SUBSCRIPTION | {"endpoint": "https://[fcm.googleapis.com/x"},
            {"endpoint": ENDPOINT},
            SUBSCRIPTION | {"endpoint": "https://127.0.0.1/"},
            SUBSCRIPTION | {"endpoint": "https://fcm.googleapis.com.elsewhere.example/"},
            SUBSCRIPTION | {"endpoint": "https://127.0.0.1\\@fcm.googleapis.com/"},
            SUBSCRIPTION | {"endpoint": "https://127.0.0.1#@fcm.googleapis.com/"},
            SUBSCRIPTION | {"endpoint": "https://a@fcm.googleapis.com/"},
            SUBSCRIPTION | {"endpoint": "https://notfcm.googleapis.com/"},
            SUBSCRIPTION | {"endpoint": "https://fcm.googleapis.com/" + "a" * 1100},
            SUBSCRIPTION | {"endpoint": "http://fcm.googleapis.com/"},
            SUBSCRIPTION | {"endpoint": "https://fcm.googleapis.com:6379/"},
            SUBSCRIPTION | {"keys": {"p256dh": "k" * 300, "auth": "a"}},
        ],
    )
    def test_cannot_send_the_server_elsewhere(self, client: Client, owner: User, said: object) -> None:
        client.force_login(owner)
        assert self.post(client, "notifications:subscribe", said) == 400
        assert not PushSubscription.objects.exists()

    def test_makes_room_for_the_newest(self, client: Client, owner: User) -> None:
        PushSubscriptionFactory.create_batch(20, user=owner)
        client.force_login(owner)
        assert self.post(client, "notifications:subscribe", SUBSCRIPTION) == 201
        assert PushSubscription.objects.filter(user=owner).count() == 20
        assert PushSubscription.objects.filter(endpoint=ENDPOINT).exists()

    def test_is_forgotten_by_its_person_alone(self, client: Client, owner: User, stranger: User) -> None:
        PushSubscriptionFactory.create(user=owner, endpoint=ENDPOINT)
        client.force_login(stranger)
        self.post(client, "notifications:unsubscribe", {"endpoint": ENDPOINT})
        assert PushSubscription.objects.exists()
        client.force_login(owner)
        assert self.post(client, "notifications:unsubscribe", {"endpoint": ENDPOINT}) == 204
        assert not PushSubscription.objects.exists()

    def test_gets_its_service_worker_from_the_root(self, client: Client) -> None:
        answer = client.get("/sw.js")
        assert answer["Content-Type"] == "text/javascript"
        assert b"notificationclick" in answer.content


def test_a_pause_by_the_operator_is_told_too(owner: User) -> None:
    run = RunFactory.create(
        reminder=ReminderFactory.create(owner=owner),
        paused=True,
        pause_reason=PauseReason.OPERATOR,
        pending=2,
    )
    notifications.run_changed(run)
    assert Notification.objects.get().body == f"{run.name}: 0 of 2 groups delivered. Tap to resume or cancel."
