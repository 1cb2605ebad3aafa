"""The pages of webhooks."""

import re

import pytest
from django.test import Client
from django.urls import reverse

from accounts.models import Delivery, User, Webhook
from accounts.models.webhook import EventType
from tests.factories import DeliveryFactory, WebhookFactory


@pytest.fixture
def own(client: Client, owner: User) -> Client:
    client.force_login(owner)
    return client


@pytest.fixture
def webhook(owner: User) -> Webhook:
    return WebhookFactory.create(owner=owner)


def do(client: Client, webhook: Webhook, verb: str) -> str:
    answer = client.post(reverse("webhooks:act", args=[webhook.pk, verb]), follow=True)
    assert answer.status_code == 200
    return answer.content.decode()


def test_a_new_one_shows_its_secret_once(own: Client, owner: User) -> None:
    answer = own.post("/webhooks/", {"url": "https://example.com/x", "events": ["run.finished"]})
    assert re.search(r"whsec_[\w+/=]{44}", answer.content.decode())
    assert "whsec_" not in own.get("/webhooks/").content.decode()
    made = Webhook.objects.get()
    assert (made.owner, made.events) == (owner, ["run.finished"])


@pytest.mark.parametrize(
    "typed", [{"url": "ftp://x/", "events": ["run.finished"]}, {"url": "https://x.example/"}]
)
def test_what_is_wrong_is_said_at_its_field(own: Client, typed: dict[str, object]) -> None:
    assert 'class="error' in own.post("/webhooks/", typed).content.decode()
    assert not Webhook.objects.exists()


def test_the_log_shows_bodies_and_answers_and_delivers_again(own: Client, webhook: Webhook) -> None:
    row = DeliveryFactory.create(webhook=webhook, given_up=True, answer="<b>Not now.</b>")
    text = own.get(reverse("webhooks:page", args=[webhook.pk])).content.decode()
    assert "&lt;b&gt;Not now." in text
    assert "run.finished" in text
    own.post(reverse("webhooks:replay", args=[webhook.pk, row.pk]))
    row.refresh_from_db()
    assert (row.state, row.attempts) == ("pending", 0)


def test_each_button_does_what_it_says(own: Client, webhook: Webhook) -> None:
    assert "A test is on its way" in do(own, webhook, "test")
    assert Delivery.objects.get().type == "webhook.test"
    old = Webhook.objects.get().secrets["current"]
    do(own, webhook, "rotate")
    assert Webhook.objects.get().secrets["current"] != old
    assert Webhook.objects.get().secrets["previous"] == old
    do(own, webhook, "off")
    assert "It is switched off. Switch it on first." in do(own, webhook, "test")
    do(own, webhook, "on")
    assert Webhook.objects.get().switched_off_at is None
    own.post(
        reverse("webhooks:page", args=[webhook.pk]),
        {"url": "https://b.example/", "events": ["reply.received"]},
    )
    assert Webhook.objects.get().events == ["reply.received"]


def test_it_is_deleted_after_a_question(own: Client, webhook: Webhook) -> None:
    address = reverse("webhooks:delete", args=[webhook.pk])
    assert address in own.get(reverse("webhooks:page", args=[webhook.pk])).content.decode()
    assert "its secret and log are deleted" in own.get(address).content.decode()
    assert Webhook.objects.exists()
    assert "Webhook deleted" in own.post(address, follow=True).content.decode()
    assert not Webhook.objects.exists()


def test_the_list_names_events_in_words(own: Client, owner: User) -> None:
    WebhookFactory.create(owner=owner, events=["reply.received", "run.finished"])
    assert "Run finished, Reply received</td>" in own.get("/webhooks/").content.decode()
    Webhook.objects.update(events=EventType.values)
    assert "All events</td>" in own.get("/webhooks/").content.decode()


def test_a_reader_sees_it_without_buttons_and_a_stranger_not_at_all(
    client: Client, webhook: Webhook, reader: User, stranger: User
) -> None:
    page, act = (
        reverse("webhooks:page", args=[webhook.pk]),
        reverse("webhooks:act", args=[webhook.pk, "delete"]),
    )
    client.force_login(reader)
    assert "Send a test" not in client.get(page).content.decode()
    assert client.post(act).status_code == 403
    assert client.post(page, {"url": "https://b.example/", "events": ["reply.received"]}).status_code == 403
    client.force_login(stranger)
    assert client.get(page).status_code == client.post(act).status_code == 404
