"""Webhooks out: addresses, secrets, the log, a test and replays."""

from collections.abc import Sequence

from django.http import HttpRequest
from ninja import Path, Query, Router, Status

from accounts.models import Delivery, Role, Webhook
from accounts.roles import visible
from api.access import MANAGE, READ, person_of
from api.hooks import manage
from api.hooks.manage import Made
from api.paging import page
from api.routes.rows import owner_for, seen, touched
from api.schemas.base import Id, ListAsked, Page
from api.schemas.webhooks import (
    DeliveriesAsked,
    DeliveryShown,
    WebhookChanged,
    WebhookGiven,
    WebhookMade,
    WebhookShown,
)

router = Router(tags=["Webhooks"])
COLUMNS = (
    *("url", "events", "created_at", "switched_off_at", "switched_off_reason"),
    *("failing_since", "failures", "retry_at"),
)


@router.get("", response=Page[WebhookShown], auth=READ)
def list_webhooks(request: HttpRequest, asked: Query[ListAsked]) -> Page[WebhookShown]:
    """Return the webhooks."""
    rows = visible(Webhook.objects.defer("secrets"), person_of(request))
    return page(rows, asked, _webhooks)


@router.get("/{int:pk}", response=WebhookShown, auth=READ)
def show_webhook(request: HttpRequest, pk: Path[Id]) -> WebhookShown:
    """Return one webhook."""
    return _webhooks([seen(Webhook.objects.defer("secrets"), request, pk)])[0]


@router.post("", response={201: WebhookMade}, auth=MANAGE)
def make_webhook(request: HttpRequest, body: WebhookGiven) -> Status[WebhookMade]:
    """Make a webhook. Its secret is in this answer and nowhere else: keep it to check signatures.

    This answer is kept for 24 hours, encrypted, where the request has an Idempotency-Key.
    """
    owner = owner_for(request, body.owner, Role.MANAGE)
    made = manage.make(owner, url=body.url, events=body.events, by=person_of(request))
    return Status(201, _made(made))


@router.patch("/{int:pk}", response=WebhookShown, auth=MANAGE)
def change_webhook(request: HttpRequest, pk: Path[Id], body: WebhookChanged) -> WebhookShown:
    """Change the address or the events."""
    webhook = touched(Webhook.objects.all(), request, pk, Role.MANAGE)
    return _webhooks([manage.change(webhook, url=body.url, events=body.events, by=person_of(request))])[0]


@router.delete("/{int:pk}", response={204: None}, auth=MANAGE)
def delete_webhook(request: HttpRequest, pk: Path[Id]) -> Status[None]:
    """Delete a webhook with its log."""
    manage.delete(touched(Webhook.objects.all(), request, pk, Role.MANAGE), by=person_of(request))
    return Status(204, None)


@router.post("/{int:pk}/rotate", response=WebhookMade, auth=MANAGE)
def rotate_secret(request: HttpRequest, pk: Path[Id]) -> WebhookMade:
    """Make a new secret. For 24 hours the old one signs too."""
    return _made(
        manage.rotate(touched(Webhook.objects.all(), request, pk, Role.MANAGE), by=person_of(request))
    )


@router.post("/{int:pk}/switch-on", response=WebhookShown, auth=MANAGE)
def switch_webhook_on(request: HttpRequest, pk: Path[Id]) -> WebhookShown:
    """Deliver again. Events of the time between are not told."""
    webhook = manage.switch_on(
        touched(Webhook.objects.all(), request, pk, Role.MANAGE), by=person_of(request)
    )
    return _webhooks([webhook])[0]


@router.post("/{int:pk}/switch-off", response=WebhookShown, auth=MANAGE)
def switch_webhook_off(request: HttpRequest, pk: Path[Id]) -> WebhookShown:
    """Deliver nothing more, and give up what waits."""
    webhook = manage.switch_off(
        touched(Webhook.objects.all(), request, pk, Role.MANAGE), by=person_of(request)
    )
    return _webhooks([webhook])[0]


@router.post("/{int:pk}/test", response={202: DeliveryShown}, auth=MANAGE)
def test_webhook(request: HttpRequest, pk: Path[Id]) -> Status[DeliveryShown]:
    """Queue an event `webhook.test` for this webhook alone; look into the log for its answer."""
    delivery = manage.send_test(
        touched(Webhook.objects.all(), request, pk, Role.MANAGE), by=person_of(request)
    )
    return Status(202, _deliveries([delivery])[0])


@router.get("/{int:pk}/deliveries", response=Page[DeliveryShown], auth=READ)
def list_deliveries(request: HttpRequest, pk: Path[Id], asked: Query[DeliveriesAsked]) -> Page[DeliveryShown]:
    """Return the log of a webhook, the newest first. It is kept for 30 days."""
    rows = Delivery.objects.filter(webhook=seen(Webhook.objects.all(), request, pk))
    if asked.state is not None:
        rows = rows.filter(state=asked.state)
    return page(rows, asked, _deliveries, newest_first=True)


@router.post("/{int:pk}/deliveries/{int:delivery}/replay", response={202: DeliveryShown}, auth=MANAGE)
def replay_delivery(request: HttpRequest, pk: Path[Id], delivery: Path[Id]) -> Status[DeliveryShown]:
    """Deliver an event again, with the same id and body."""
    touched(Webhook.objects.all(), request, pk, Role.MANAGE)
    rows = Delivery.objects.filter(webhook=pk).select_related("webhook")
    found = manage.replay(seen(rows, request, delivery), by=person_of(request))
    return Status(202, _deliveries([found])[0])


def _webhooks(found: Sequence[Webhook]) -> list[WebhookShown]:
    return [
        WebhookShown(
            id=webhook.pk,
            owner=webhook.owner_id,
            **{name: getattr(webhook, name) for name in COLUMNS},
        )
        for webhook in found
    ]


def _made(made: Made) -> WebhookMade:
    return WebhookMade(**_webhooks([made.webhook])[0].model_dump(), secret=made.secret)


def _deliveries(found: Sequence[Delivery]) -> list[DeliveryShown]:
    names = ("type", "state", "attempts", "created_at", "ended_at", "status", "answer", "payload")
    return [
        DeliveryShown(
            id=row.pk,
            message=f"msg_{row.key.hex}",
            next_try_at=row.next_try_at if row.state == Delivery.State.PENDING else None,
            **{name: getattr(row, name) for name in names},
        )
        for row in found
    ]
