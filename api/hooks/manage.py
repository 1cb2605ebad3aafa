"""Makes and changes webhooks: their address, their events, their secrets; tests and replays."""

import base64
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from django.db import transaction
from django.utils import timezone

from accounts.models import Delivery, Role, User, Webhook
from accounts.models.webhook import TEST, EventType
from accounts.outbox import KEPT_TRYING, emit_to
from accounts.roles import require_touch
from audit.record import differing, record, values_of
from delivery.transports.networks.addresses import BadWebAddressError, web_address

MOST = 20  # webhooks of one owner
BOTH_SIGN = timedelta(hours=24)
FAILING = ("failing_since", "failures", "retry_at")


class BadWebhookError(ValueError):
    """The webhook cannot be like this; the text says why, and `field` where."""

    def __init__(self, field: str, sentence: str) -> None:
        super().__init__(sentence)
        self.field = field


@dataclass(frozen=True, slots=True)
class Made:
    """A webhook and its secret, which is shown once."""

    webhook: Webhook
    secret: str


@transaction.atomic
def make(owner: User, *, url: str, events: Sequence[EventType], by: User) -> Made:
    """Make a webhook and return it with the secret that signs its events."""
    User.objects.select_for_update(no_key=True).get(pk=owner.pk)
    if Webhook.objects.filter(owner=owner).count() >= MOST:
        raise BadWebhookError("url", f"There are {MOST} webhooks already. Delete one first.")
    secret = _new_secret()
    webhook = Webhook.objects.create(
        owner=owner,
        url=address_of(url),
        events=_named(events),
        secrets={"current": secret, "previous": ""},
        made_by=by,
    )
    record("webhook.added", webhook, after=values_of(webhook, ("url", "events")))
    return Made(webhook, secret)


@transaction.atomic
def change(
    webhook: Webhook, *, url: str | None = None, events: Sequence[EventType] | None = None, by: User
) -> Webhook:
    """Change what is given."""
    webhook = _locked(webhook, by)
    before = values_of(webhook, ("url", "events"))
    if url is not None:
        found = address_of(url)
        if found != webhook.url:  # the failures were those of the old address
            webhook.failing_since, webhook.failures, webhook.retry_at = None, 0, None
            webhook.made_by = by  # it tells whoever chose the address
        webhook.url = found
    if events is not None:
        webhook.events = _named(events)
    webhook.save(update_fields=["url", "events", "made_by", *FAILING])
    old, new = differing(before, values_of(webhook, ("url", "events")))
    record("webhook.changed", webhook, by=by, before=old, after=new)
    return webhook


@transaction.atomic
def rotate(webhook: Webhook, *, by: User) -> Made:
    """Give it a new secret. For 24 hours both sign, so that the receiver can change over without a gap."""
    webhook = _locked(webhook, by)
    secret = _new_secret()
    webhook.secrets = {"current": secret, "previous": webhook.secrets["current"]}
    webhook.previous_until = timezone.now() + BOTH_SIGN
    webhook.save(update_fields=["secrets", "previous_until"])
    record("webhook.changed", webhook, by=by, note="a new secret")
    return Made(webhook, secret)


@transaction.atomic
def switch_on(webhook: Webhook, *, by: User) -> Webhook:
    """Deliver again after it was switched off. Events of the time between are not told.

    From now on it is the webhook of the person who switched it on: it stops when they leave (`leavers.py`).
    """
    webhook = _locked(webhook, by)
    webhook.made_by = by
    webhook.switched_off_at, webhook.switched_off_reason = None, ""
    webhook.failing_since, webhook.failures, webhook.retry_at = None, 0, None
    webhook.save(update_fields=["made_by", "switched_off_at", "switched_off_reason", *FAILING])
    record("webhook.changed", webhook, by=by, note="switched on")
    return webhook


@transaction.atomic
def switch_off(webhook: Webhook, *, by: User, reason: str = "") -> Webhook:
    """Tell nothing more, and give up what waits."""
    webhook = _locked(webhook, by)
    off(webhook, reason or f"switched off by {by}")
    record("webhook.changed", webhook, by=by, note="switched off")
    return webhook


def off(webhook: Webhook, reason: str) -> None:
    """Switch off a locked webhook."""
    now = timezone.now()
    webhook.switched_off_at, webhook.switched_off_reason = now, reason[:255]
    webhook.save(update_fields=["switched_off_at", "switched_off_reason"])
    waiting = Delivery.objects.filter(webhook=webhook, state=Delivery.State.PENDING)
    waiting.update(state=Delivery.State.GIVEN_UP, ended_at=now)


def delete(webhook: Webhook, *, by: User) -> None:
    require_touch(webhook, by, Role.MANAGE)
    with transaction.atomic():
        record("webhook.removed", webhook, by=by)
        webhook.delete()


def send_test(webhook: Webhook, *, by: User) -> Delivery:
    """Queue a test event for this webhook alone."""
    require_touch(webhook, by, Role.MANAGE)
    if webhook.switched_off_at is not None:
        raise BadWebhookError("webhook", "It is switched off. Switch it on first.")
    data = {"sentence": "This is a test of Paceline.", "webhook": webhook.pk}
    with transaction.atomic():
        record("webhook.tested", webhook, by=by)
        return emit_to(webhook.pk, TEST, data)


@transaction.atomic
def replay(delivery: Delivery, *, by: User) -> Delivery:
    """Deliver an event again, with the same id and the same body."""
    webhook = _locked(delivery.webhook, by)
    if webhook.switched_off_at is not None:
        raise BadWebhookError("webhook", "The webhook is switched off. Switch it on first.")
    delivery = Delivery.objects.select_for_update().get(pk=delivery.pk)
    now = timezone.now()
    delivery.state, delivery.ended_at, delivery.attempts = Delivery.State.PENDING, None, 0
    delivery.next_try_at, delivery.give_up_at = now, now + KEPT_TRYING
    delivery.save(
        update_fields=["state", "ended_at", "attempts", "next_try_at", "give_up_at"],
    )
    record("webhook.replayed", webhook, by=by, after={"event": delivery.pk})
    return delivery


def address_of(url: str) -> str:
    """Return the address as it is stored; raise BadWebhookError."""
    try:
        found = str(web_address(url.strip()))
    except BadWebAddressError as error:
        raise BadWebhookError("url", "Write a plain http or https address, without a user name.") from error
    if len(found) > 500:
        raise BadWebhookError("url", "The address is longer than 500 characters.")
    return found


def _named(events: Sequence[EventType]) -> list[str]:
    found = sorted({EventType(event).value for event in events})
    if not found:
        raise BadWebhookError("events", "Choose at least one event.")
    return found


def _new_secret() -> str:
    return f"whsec_{base64.b64encode(secrets.token_bytes(32)).decode()}"


def _locked(webhook: Webhook, by: User) -> Webhook:
    require_touch(webhook, by, Role.MANAGE)
    return Webhook.objects.select_for_update(no_key=True).get(pk=webhook.pk)
