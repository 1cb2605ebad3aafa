"""Tells owners what they should know, each thing once: in their list, on their open pages, in their browsers."""

import structlog
from django.conf import settings
from django.db import transaction
from kombu.exceptions import OperationalError

from activity.models import Notification, PushSubscription
from activity.persons import reach
from config.celery import app

log = structlog.get_logger(__name__)

PUSH_TASK = "activity.push"


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
    """Add to the owner's notifications unless the same `key` is there; whether it was new.

    With a `run_id` the news is of that run, and of a paused one it can be resumed or canceled.
    """
    made, created = Notification.objects.get_or_create(
        owner_id=owner_id,
        key=key,
        defaults={"kind": kind, "title": title[:120], "body": body[:500], "url": url, "run_id": run_id},
    )
    if created:
        transaction.on_commit(lambda: _spread(made))
    return created


def _spread(made: Notification) -> None:
    reach(made.owner_id, "notification.made", notification=made.pk)
    if settings.VAPID_PRIVATE_KEY:
        _push_later(made)


def _push_later(made: Notification) -> None:
    """A task for each browser of the owner, so that none waits for another's push service."""
    browsers = PushSubscription.objects.filter(user_id=made.owner_id).values_list("pk", flat=True)
    for pk in browsers:
        try:
            app.send_task(PUSH_TASK, args=[pk, made.pk])
        except OperationalError:
            log.warning("push_not_queued", notification=made.pk)
