"""Webhooks out: signed, at least once, in order, later when the receiver fails, and never in anybody's way."""

from collections.abc import Iterator
from datetime import timedelta
from random import Random
from typing import Any

import pytest
from django.db import transaction
from django.utils import timezone
from pytest_django import Settings
from standardwebhooks import Webhook as Verifier
from standardwebhooks import WebhookVerificationError

from accounts import outbox
from accounts.models import Delivery, User, Webhook
from accounts.models.webhook import EventType
from accounts.outbox import Event
from activity.models import Notification
from api.hooks import deliver, dispatch, manage
from tests.api.hooks.receiver import Receiver, receiving
from tests.factories import DeliveryFactory, WebhookFactory

RNG = Random(7)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as found:
        yield found


@pytest.fixture
def webhook(owner: User, receiver: Receiver) -> Webhook:
    return manage.make(owner, url=receiver.url, events=list(EventType), by=owner).webhook


def emit(owner: User, *numbers: int, sequence: str = "run:1") -> None:
    outbox.emit_all(
        [
            Event(owner_id=owner.pk, type=EventType.RUN_PAUSED, data={"n": n}, sequence=sequence)
            for n in numbers
        ]
    )


def serve(webhook: Webhook) -> int:
    return deliver.serve(webhook.pk, rng=RNG)


def numbers(receiver: Receiver) -> list[int]:
    return [event["data"]["n"] for event in receiver.events]


def due_again() -> None:
    """Let the pauses pass."""
    now = timezone.now()
    Delivery.objects.filter(state="pending").update(next_try_at=now)
    Webhook.objects.update(retry_at=None)


def test_an_event_is_signed_as_standard_webhooks_says(
    owner: User, webhook: Webhook, receiver: Receiver
) -> None:
    emit(owner, 1)
    assert serve(webhook) == 1
    secret = webhook.secrets["current"]
    told = Verifier(secret).verify(receiver.bodies[0], receiver.headers[0])
    assert (told["type"], told["data"]) == ("run.paused", {"n": 1})
    assert told["timestamp"].endswith("Z")
    delivery = Delivery.objects.get()
    assert (delivery.state, delivery.status, delivery.answer) == ("delivered", 200, "Taken.")
    with pytest.raises(WebhookVerificationError):
        Verifier(secret).verify(receiver.bodies[0].replace("1", "2"), receiver.headers[0])


def test_after_a_rotation_both_secrets_sign_for_a_day(
    owner: User, webhook: Webhook, receiver: Receiver
) -> None:
    old = webhook.secrets["current"]
    new = manage.rotate(webhook, by=owner).secret
    emit(owner, 1)
    serve(webhook)
    for secret in (old, new):
        Verifier(secret).verify(receiver.bodies[0], receiver.headers[0])
    Webhook.objects.update(previous_until=timezone.now() - timedelta(seconds=1))
    emit(owner, 2)
    serve(webhook)
    Verifier(new).verify(receiver.bodies[1], receiver.headers[1])
    with pytest.raises(WebhookVerificationError):
        Verifier(old).verify(receiver.bodies[1], receiver.headers[1])


def test_only_webhooks_of_the_owner_that_want_the_event_get_it(owner: User, webhook: Webhook) -> None:
    WebhookFactory.create(owner=owner, events=["reply.received"])
    WebhookFactory.create(owner=owner, off=True)
    WebhookFactory.create()
    emit(owner, 1)
    assert [delivery.webhook for delivery in Delivery.objects.all()] == [webhook]


def test_events_of_one_run_arrive_in_order_and_those_of_others_beside_them(
    owner: User, webhook: Webhook, receiver: Receiver
) -> None:
    receiver.slow = 0.05
    for n in range(6):
        emit(owner, 10 + n, sequence="run:1")
        emit(owner, 20 + n, sequence="run:2")
    assert serve(webhook) == 12
    found = numbers(receiver)
    assert [n for n in found if n < 20] == sorted(n for n in found if n < 20)
    assert [n for n in found if n >= 20] == sorted(n for n in found if n >= 20)
    assert receiver.most_at_once == 2


def test_what_fails_is_tried_later_and_holds_back_only_its_own_run(
    owner: User, webhook: Webhook, receiver: Receiver
) -> None:
    receiver.answer = lambda event: 500 if event["data"]["n"] == 1 else 200
    emit(owner, 1, 2, sequence="run:1")
    emit(owner, 3, sequence="run:2")
    serve(webhook)
    assert sorted(numbers(receiver)) == [1, 3]
    failed, follower, other = Delivery.objects.order_by("pk")
    assert (failed.state, failed.status, failed.attempts) == ("pending", 500, 1)
    assert follower.next_try_at >= failed.next_try_at > timezone.now()
    assert other.state == "delivered"
    receiver.answer = lambda _: 202
    due_again()
    assert serve(webhook) == 2
    assert numbers(receiver)[2:] == [1, 2]
    first = numbers(receiver).index(1)  # it went side by side with the 3
    assert receiver.headers[first]["webhook-id"] == receiver.headers[2]["webhook-id"]


def test_a_receiver_that_fails_again_and_again_rests(
    owner: User, webhook: Webhook, receiver: Receiver
) -> None:
    receiver.answer = lambda _: 503
    for n in range(40):
        emit(owner, n, sequence=f"run:{n}")
    serve(webhook)
    assert len(receiver.bodies) == deliver.FAILURES_IN_A_ROW * deliver.AT_ONCE
    webhook.refresh_from_db()
    assert webhook.retry_at is not None
    assert dispatch.dispatch() == []
    receiver.answer = lambda _: 200
    due_again()
    serve(webhook)
    webhook.refresh_from_db()
    assert (webhook.failures, webhook.failing_since) == (0, None)
    assert not Delivery.objects.filter(state="pending").exists()


def test_a_new_address_is_tried_at_once_and_starts_without_failures(owner: User, webhook: Webhook) -> None:
    now = timezone.now()
    rests = now + timedelta(hours=5)
    Webhook.objects.update(failing_since=now - timedelta(days=2), failures=9, retry_at=rests)
    webhook.refresh_from_db()
    assert manage.change(webhook, url=webhook.url, by=owner).retry_at == rests
    changed = manage.change(webhook, url="https://example.com/repaired", by=owner)
    assert (changed.failing_since, changed.failures, changed.retry_at) == (None, 0, None)


def test_an_event_that_is_refused_for_three_days_is_given_up_and_the_next_one_goes(
    owner: User, webhook: Webhook, receiver: Receiver
) -> None:
    receiver.answer = lambda event: 400 if event["data"]["n"] == 1 else 200
    emit(owner, 1, 2)
    Delivery.objects.order_by("pk").filter(payload__data__n=1).update(give_up_at=timezone.now())
    serve(webhook)
    assert [delivery.state for delivery in Delivery.objects.order_by("pk")] == ["given_up", "delivered"]


def test_a_receiver_that_took_nothing_for_three_days_is_switched_off_and_its_owner_told_once(
    owner: User, webhook: Webhook, receiver: Receiver
) -> None:
    receiver.answer = lambda _: 410
    Webhook.objects.update(failing_since=timezone.now() - timedelta(days=3, seconds=1), failures=2)
    emit(owner, 1, 2)
    serve(webhook)
    webhook.refresh_from_db()
    assert "answered 410" in webhook.switched_off_reason
    assert set(Delivery.objects.values_list("state", flat=True)) == {"given_up"}
    assert Notification.objects.get().title == "A webhook was switched off"
    emit(owner, 3)
    assert Delivery.objects.count() == 2
    manage.switch_on(webhook, by=owner)
    emit(owner, 4)
    receiver.answer = lambda _: 200
    assert serve(webhook) == 1


def test_a_worker_that_died_is_followed_by_another_and_the_event_comes_with_the_same_id(
    owner: User, webhook: Webhook, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed between the post and the note: the receiver gets it again, and knows it by its id."""

    def dies(*_: Any, **__: Any) -> None:
        raise SystemExit

    emit(owner, 1, 2)
    with monkeypatch.context() as patch:
        patch.setattr(deliver, "_write_down", dies)
        with pytest.raises(SystemExit):
            serve(webhook)
    assert serve(webhook) == 0  # claimed: nothing overtakes it
    due_again()
    assert serve(webhook) == 2
    assert numbers(receiver) == [1, 1, 2]
    assert len({headers["webhook-id"] for headers in receiver.headers}) == 2


def test_nothing_is_posted_to_private_networks_unless_they_are_allowed(
    owner: User, webhook: Webhook, receiver: Receiver, settings: Settings
) -> None:
    settings.PRIVATE_NETWORKS = ["none"]
    emit(owner, 1)
    assert serve(webhook) == 0
    assert receiver.bodies == []
    assert "private address" in Delivery.objects.get().answer


def test_a_receiver_that_leads_elsewhere_is_not_followed(
    owner: User, webhook: Webhook, receiver: Receiver
) -> None:
    receiver.answer = lambda _: 302
    emit(owner, 1)
    assert serve(webhook) == 0
    assert len(receiver.bodies) == 1


def test_a_receiver_that_answers_byte_by_byte_is_left_after_its_time(
    owner: User, webhook: Webhook, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deliver, "TIMEOUT_SECONDS", 0.3)
    receiver.drip = 0.05
    emit(owner, 1)
    assert serve(webhook) == 0
    assert "no answer" in Delivery.objects.get().answer


@pytest.mark.parametrize(
    ("asked", "least", "most"),
    [
        ("60", 55, 60),
        ("Fri, 01 Jan 9999 00:00:00 GMT", 21_000, 21_600),
        ("99999999999999999999", 21_000, 21_600),
        ("-5", 0, 0),
        ("soon", 0, 0),
    ],
)
def test_a_receiver_that_asks_for_a_pause_gets_it_within_reason(
    owner: User, webhook: Webhook, receiver: Receiver, asked: str, least: int, most: int
) -> None:
    receiver.answer, receiver.retry_after = (lambda _: 429), asked
    emit(owner, 1)
    before = timezone.now()
    serve(webhook)
    webhook.refresh_from_db()
    pause = (webhook.retry_at - before).total_seconds() if webhook.retry_at else 0
    assert least <= pause <= most + 5


def test_a_receiver_that_is_gone_is_switched_off_at_once(
    owner: User, webhook: Webhook, receiver: Receiver
) -> None:
    receiver.answer = lambda _: 410
    emit(owner, 1)
    serve(webhook)
    webhook.refresh_from_db()
    assert webhook.switched_off_reason == "It is gone: answered 410"
    assert "is gone (answered 410)" in Notification.objects.get(kind="webhook").body


def test_a_shift_keeps_its_connection_and_survives_that_it_is_closed(
    owner: User, webhook: Webhook, receiver: Receiver
) -> None:
    """The receiver for tests closes each connection after its answer."""
    emit(owner, *range(9))
    assert serve(webhook) == 9
    assert {delivery.attempts for delivery in Delivery.objects.all()} == {1}


def test_an_event_that_was_rolled_back_is_never_told(owner: User, webhook: Webhook) -> None:
    with transaction.atomic():
        emit(owner, 1)
        transaction.set_rollback(True)
    assert not Delivery.objects.exists()


def test_few_webhooks_are_served_at_once_and_fewer_of_one_owner(owner: User, redis: object) -> None:
    for webhook in WebhookFactory.create_batch(4, owner=owner):
        DeliveryFactory.create_batch(2, webhook=webhook)
    for _ in range(12):
        DeliveryFactory.create()
    first = dispatch.dispatch()
    assert len(first) == dispatch.AT_ONCE
    mine = Webhook.objects.filter(owner=owner, pk__in=first).count()
    assert mine <= dispatch.EACH
    assert dispatch.dispatch() == []  # all places are taken
    Webhook.objects.filter(pk__in=first).update(busy_until=None, served_at=timezone.now())
    second = dispatch.dispatch()
    assert not set(first) & set(second)  # those that waited longest come first


def test_nothing_is_told_to_the_webhooks_of_a_person_who_was_deactivated(
    owner: User, webhook: Webhook, redis: object
) -> None:
    emit(owner, 1)
    User.objects.filter(pk=owner.pk).update(is_active=False)
    emit(owner, 2)
    assert Delivery.objects.count() == 1
    assert dispatch.dispatch() == []
    User.objects.filter(pk=owner.pk).update(is_active=True)
    assert dispatch.dispatch() == [webhook.pk]


def test_a_test_goes_to_one_webhook_and_an_old_event_can_be_replayed(
    owner: User, webhook: Webhook, receiver: Receiver
) -> None:
    manage.send_test(webhook, by=owner)
    serve(webhook)
    assert receiver.events[0]["type"] == "webhook.test"
    manage.replay(Delivery.objects.get(), by=owner)
    serve(webhook)
    assert receiver.bodies[0] == receiver.bodies[1]
    assert receiver.headers[0]["webhook-id"] == receiver.headers[1]["webhook-id"]


def test_the_log_is_kept_for_thirty_days(db: None) -> None:
    old, fresh = DeliveryFactory.create(delivered=True), DeliveryFactory.create(delivered=True)
    waiting = DeliveryFactory.create()
    Delivery.objects.filter(pk=old.pk).update(ended_at=timezone.now() - timedelta(days=31))
    assert dispatch.prune() == 1
    assert set(Delivery.objects.all()) == {fresh, waiting}


@pytest.mark.parametrize(
    "url", ["ftp://a.example/", "https://me@a.example/", "example.com", "https://a\\@b/", ""]
)
def test_an_address_that_two_programs_could_read_differently_is_refused(owner: User, url: str) -> None:
    with pytest.raises(manage.BadWebhookError):
        manage.make(owner, url=url, events=[EventType.REPLY], by=owner)
