"""Web push, to a push service of our own that decrypts what it gets as a browser would."""

import json
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from datetime import timedelta
from io import StringIO
from typing import Any

import http_ece
import pytest
import time_machine
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from django.core.management import call_command
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoCaptureOnCommitCallbacks, Settings
from redis import Redis

from accounts.models import User
from activity import push
from activity.models import Notification, PushSubscription
from activity.notify import tell
from activity.pages import push_actions
from delivery import lifecycle, notifications
from delivery.models import Run
from delivery.states import PauseReason
from delivery.transports.http.exchange import Answer
from tests.activity.push_service import PushService
from tests.factories import (
    AccountFactory,
    NotificationFactory,
    PushSubscriptionFactory,
    ReminderFactory,
    RunFactory,
)

pytestmark = pytest.mark.django_db

QUEUE = "paceline:queue:paceline"


@pytest.fixture
def service(settings: Settings) -> Iterator[PushService]:
    with PushService() as opened:
        settings.PUSH_SERVICES = [opened.origin]
        yield opened


@pytest.fixture(autouse=True)
def vapid(settings: Settings) -> None:
    lines = StringIO()
    call_command("make_vapid_keys", stdout=lines)
    for line in lines.getvalue().split():
        name, _, value = line.partition("=")
        setattr(settings, name, value)
    settings.VAPID_SUBJECT = "mailto:operator@example.com"


class Browser:
    """Keys as a browser makes them, and what it can read with them."""

    def __init__(self, service: PushService, user: User) -> None:
        self._private = ec.generate_private_key(ec.SECP256R1())
        public = self._private.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
        self._secret = b"sixteen bytes of"
        self.subscription = PushSubscriptionFactory.create(
            user=user, endpoint=service.address(), p256dh=text(public), auth=text(self._secret)
        )

    def read(self, body: bytes) -> dict[str, Any]:
        said: dict[str, Any] = json.loads(
            http_ece.decrypt(body, private_key=self._private, auth_secret=self._secret, version="aes128gcm")
        )
        return said


def text(raw: bytes) -> str:
    return urlsafe_b64encode(raw).decode().rstrip("=")


@pytest.fixture
def browser(service: PushService, owner: User) -> Browser:
    return Browser(service, owner)


@pytest.fixture
def run(owner: User) -> Run:
    """Paused, and its account could go on."""
    account = AccountFactory.create(owner=owner)
    reminder = ReminderFactory.create(
        owner=owner, name="Rent is due", accounts=[account], around_the_clock=True
    )
    run = RunFactory.create(reminder=reminder, sent=3, targets=7)
    return lifecycle.pause(run, reason=PauseReason.WINDOW_CLOSED)


def notification_of(run: Run) -> Notification:
    notifications.run_changed(run)
    return Notification.objects.get(run=run)


def pushed(service: PushService, browser: Browser, made: Notification) -> dict[str, Any]:
    push.send(browser.subscription.pk, made.pk)
    return browser.read(service.pushed[-1].body)


def test_a_pause_arrives_encrypted_with_its_words_and_two_buttons(
    service: PushService, browser: Browser, run: Run
) -> None:
    made = notification_of(run)
    said = pushed(service, browser, made)
    assert said["title"] == "Reminder paused"
    assert said["body"] == "Rent is due: 3 of 10 people delivered. Tap to resume or cancel."
    assert said["url"] == f"/reminders/{run.reminder_id}/"
    assert said["tag"] == made.key
    assert sorted(said["moves"]) == ["cancel", "resume"]
    sent = service.pushed[-1]
    assert sent.headers["content-encoding"] == "aes128gcm"
    assert sent.headers["authorization"].startswith("vapid ")
    assert b"Reminder paused" not in sent.body


def test_other_news_has_no_buttons(service: PushService, browser: Browser, owner: User) -> None:
    run = RunFactory.create(reminder=ReminderFactory.create(owner=owner), success=True, sent=2)
    assert pushed(service, browser, notification_of(run))["moves"] == {}


@pytest.mark.parametrize("status", [404, 410])
def test_a_browser_that_is_gone_is_forgotten(
    service: PushService, browser: Browser, run: Run, status: int
) -> None:
    service.answer = status
    push.send(browser.subscription.pk, notification_of(run).pk)
    assert not PushSubscription.objects.exists()


@pytest.mark.parametrize("status", [429, 500])
def test_a_push_service_in_trouble_is_asked_again_later(
    service: PushService, browser: Browser, run: Run, status: int
) -> None:
    service.answer = status
    with pytest.raises(push.NotNowError):
        push.send(browser.subscription.pk, notification_of(run).pk)
    assert PushSubscription.objects.exists()


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_is_not_followed(service: PushService, browser: Browser, run: Run, status: int) -> None:
    service.answer, service.location = status, f"{service.origin}/elsewhere"
    with pytest.raises(push.NotNowError):
        push.send(browser.subscription.pk, notification_of(run).pk)
    assert [pushed.path for pushed in service.pushed] == ["/browser/1"]


def test_a_push_keeps_to_the_networks_that_are_open(
    service: PushService, browser: Browser, run: Run, settings: Settings
) -> None:
    settings.PRIVATE_NETWORKS = ["none"]
    with pytest.raises(push.NotNowError, match="PRIVATE_NETWORKS"):
        push.send(browser.subscription.pk, notification_of(run).pk)
    assert service.pushed == []


@pytest.mark.parametrize(
    "endpoint",
    [
        "http://{place}\\@fcm.googleapis.com/",
        "http://{place}#@fcm.googleapis.com/",
        "http://fcm.googleapis.com@{place}/",
        "http://{place}/browser/1",
    ],
)
def test_an_address_that_was_stored_before_the_rule_is_forgotten_and_not_posted_to(
    service: PushService, browser: Browser, run: Run, settings: Settings, endpoint: str
) -> None:
    settings.PUSH_SERVICES = ["fcm.googleapis.com"]
    place = service.origin.removeprefix("http://")
    PushSubscription.objects.update(endpoint=endpoint.format(place=place))
    push.send(browser.subscription.pk, notification_of(run).pk)
    assert service.pushed == []
    assert not PushSubscription.objects.exists()


def test_a_browser_with_keys_that_are_none_is_forgotten(
    service: PushService, browser: Browser, run: Run
) -> None:
    PushSubscription.objects.update(p256dh="AAAA")
    push.send(browser.subscription.pk, notification_of(run).pk)
    assert not PushSubscription.objects.exists()


def test_what_was_deleted_meanwhile_is_not_pushed(service: PushService, browser: Browser, run: Run) -> None:
    made = notification_of(run)
    push.send(browser.subscription.pk + 1, made.pk)
    push.send(browser.subscription.pk, made.pk + 1)
    assert service.pushed == []


def test_news_is_queued_for_each_browser_of_its_owner_once_it_is_committed(
    service: PushService,
    owner: User,
    stranger: User,
    redis: Redis,
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
) -> None:
    mine = {Browser(service, owner).subscription.pk for _ in range(2)}
    Browser(service, stranger)
    with django_capture_on_commit_callbacks(execute=True):
        tell(owner.pk, Notification.Kind.MISSED, key="a", title="Missed")
        assert redis.llen(QUEUE) == 0
    tasks = [json.loads(raw) for raw in redis.lrange(QUEUE, 0, -1)]
    assert {task["headers"]["task"] for task in tasks} == {"activity.push"}
    assert len(tasks) == len(mine)
    assert service.pushed == []


def test_without_keys_nothing_is_queued(
    browser: Browser,
    owner: User,
    redis: Redis,
    settings: Settings,
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
) -> None:
    settings.VAPID_PRIVATE_KEY = ""
    with django_capture_on_commit_callbacks(execute=True):
        tell(owner.pk, Notification.Kind.MISSED, key="a", title="Missed")
    assert redis.llen(QUEUE) == 0


class TestAButton:
    """Pressed on the notification: without a page, without a cookie."""

    @pytest.fixture
    def moves(self, service: PushService, browser: Browser, run: Run) -> dict[str, str]:
        moves: dict[str, str] = pushed(service, browser, notification_of(run))["moves"]
        return moves

    def press(self, address: str) -> tuple[int, dict[str, Any]]:
        answer = Client(enforce_csrf_checks=True).post(address)
        return answer.status_code, answer.json()

    def test_resumes(self, moves: dict[str, str], run: Run, owner: User) -> None:
        assert self.press(moves["resume"]) == (
            200,
            {
                "title": "Rent is due",
                "body": "“Rent is due” was resumed.",
                "url": f"/reminders/{run.reminder_id}/",
            },
        )
        run.refresh_from_db()
        assert run.status in {"running", "queued"}
        assert run.changed_by == owner

    def test_cancels(self, moves: dict[str, str], run: Run) -> None:
        status, asked = self.press(moves["cancel"])
        assert (status, asked["title"]) == (200, "Cancel run: Rent is due?")
        assert asked["body"].startswith("3 of 10 already received it. The other 7 will not.")
        run.refresh_from_db()
        assert run.status == "paused"
        status, said = self.press(asked["moves"]["confirm"])
        assert (status, said["body"]) == (200, "“Rent is due” was canceled. 7 messages will not be sent.")
        run.refresh_from_db()
        assert (run.status, run.skipped) == ("partial", 7)

    def test_leads_to_the_page_where_the_name_is_typed(self, run: Run, owner: User) -> None:
        Run.objects.filter(pk=run.pk).update(pending=101, total=104)
        run.refresh_from_db()
        status, asked = self.press(push_actions.address(run, owner.pk, "cancel", confirmed=True))
        assert (status, asked["url"]) == (200, f"/runs/{run.pk}/cancel")
        assert "moves" not in asked
        run.refresh_from_db()
        assert run.status == "paused"

    def test_works_once(self, moves: dict[str, str], run: Run) -> None:
        self.press(moves["resume"])
        for move in ("resume", "cancel"):
            status, said = self.press(moves[move])
            assert status == 409
            assert "has changed" in said["body"]

    def test_does_not_reach_a_later_pause(self, moves: dict[str, str], run: Run) -> None:
        Run.objects.filter(pk=run.pk).update(sent=4, pending=6)
        assert self.press(moves["cancel"])[0] == 409

    def test_is_of_no_use_after_two_days(self, moves: dict[str, str]) -> None:
        with time_machine.travel(timezone.now() + timedelta(days=2, minutes=1), tick=False):
            status, said = self.press(moves["resume"])
        assert status == 409
        assert "too old" in said["body"]

    def test_cannot_be_forged(self, moves: dict[str, str]) -> None:
        assert self.press(moves["resume"][:-8] + "aaaaaaa/")[0] == 409

    def test_is_of_no_use_to_somebody_who_left(self, moves: dict[str, str], owner: User, run: Run) -> None:
        User.objects.filter(pk=owner.pk).update(is_active=False)
        assert self.press(moves["resume"])[0] == 409
        run.refresh_from_db()
        assert run.status == "paused"

    def test_is_not_pressed_by_looking(self, moves: dict[str, str]) -> None:
        assert Client().get(moves["resume"]).status_code == 405


def test_a_pair_of_keys_is_printed_for_programs_too() -> None:
    lines = StringIO()
    call_command("make_vapid_keys", json=True, stdout=lines)
    assert set(json.loads(lines.getvalue())) == {"VAPID_PUBLIC_KEY", "VAPID_PRIVATE_KEY"}


def test_each_pair_of_keys_is_new() -> None:
    first, second = StringIO(), StringIO()
    call_command("make_vapid_keys", stdout=first)
    call_command("make_vapid_keys", stdout=second)
    assert first.getvalue() != second.getvalue()


def test_no_connection_is_held_while_the_push_service_is_waited_for(
    browser: Browser, owner: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A push service that hangs would use up the pool of its worker."""
    steps = list[str]()

    async def exchanged(_request: object) -> Answer:
        steps.append("asked")
        return Answer(status=201, headers={}, body=b"")

    monkeypatch.setattr("delivery.sessions.calls.release_connection", lambda: steps.append("released"))
    monkeypatch.setattr(push, "_exchanged", exchanged)
    push.send(browser.subscription.pk, NotificationFactory.create(owner=owner).pk)
    assert steps == ["released", "asked"]
