"""Notifies people, of each thing once: in their list, on their open pages, in their browsers.

A row of the outbox, written with the notification, lets `notices` pass it on to addresses and team members.
"""

from functools import partial

from django.conf import settings
from django.db import transaction

from activity.models import Notification, NotificationOutbox, PushSubscription
from activity.person_events import send_event
from config.celery import app
from config.redis.publishing import publish

PUSH_TASK = "activity.push"
# The end of a text that asks its reader to decide. People who may only read get the text without it.
DECIDE = " Tap to resume or cancel."


@transaction.atomic
def tell(
    owner_id: int,
    kind: Notification.Kind,
    *,
    key: str,
    title: str,
    body: str = "",
    url: str = "",
    run_id: int | None = None,
) -> bool:
    """Add a notification for the owner unless the same `key` exists; return whether it was new.

    With a `run_id` the notification is about that run, which can be resumed or canceled from it while it is paused.
    """
    made, created = Notification.objects.get_or_create(
        owner_id=owner_id,
        key=key,
        defaults={"kind": kind, "title": title[:120], "body": body[:500], "url": url, "run_id": run_id},
    )
    if created:
        NotificationOutbox.objects.create(notification=made)
        transaction.on_commit(lambda: _spread(made))
    return created


def _spread(made: Notification) -> None:
    send_event(made.owner_id, "notification.made", notification=made.pk)
    if settings.VAPID_PRIVATE_KEY:
        _push_later(made)


def _push_later(made: Notification) -> None:
    """Queue a task for each browser of the owner, so that none waits for another's push service."""
    active = PushSubscription.objects.filter(user_id=made.owner_id, user__is_active=True)
    browsers = active.values_list("pk", flat=True)
    for pk in browsers:
        publish(partial(app.send_task, PUSH_TASK, args=[pk, made.pk]))
