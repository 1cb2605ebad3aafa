"""Gives webhooks with due events to workers: few at once, so that slow receivers leave the workers to the sending.

At most `AT_ONCE` webhooks of all owners are served at the same time, and at most `EACH` of one owner. Those that
waited longest come first.
"""

from datetime import timedelta
from functools import partial

from django.conf import settings
from django.db import connection
from django.utils import timezone

from accounts.models import Delivery
from api.hooks.deliver import BUSY
from config.celery import app
from config.redis.publishing import publish

TASK = "api.deliver_webhook"
AT_ONCE, EACH = 8, 2
LOG_KEPT_DAYS = 30  # unless KEEP_DAYS_OF says otherwise
SLICE = 5_000

TAKE = """
WITH busy AS MATERIALIZED (
    SELECT owner_id, count(*) AS number FROM accounts_webhook WHERE busy_until > %(now)s GROUP BY owner_id
), due AS (
    SELECT w.id, w.served_at,
           row_number() OVER (PARTITION BY w.owner_id ORDER BY w.served_at NULLS FIRST, w.id)
           + COALESCE((SELECT number FROM busy WHERE busy.owner_id = w.owner_id), 0) AS place
    FROM accounts_webhook w JOIN accounts_user u ON u.id = w.owner_id AND u.is_active
    WHERE w.switched_off_at IS NULL AND COALESCE(w.retry_at, %(now)s) <= %(now)s
      AND COALESCE(w.busy_until, %(now)s) <= %(now)s
      AND EXISTS (SELECT 1 FROM accounts_delivery d
                  WHERE d.webhook_id = w.id AND d.state = 'pending' AND d.next_try_at <= %(now)s)
), chosen AS (
    SELECT id FROM due WHERE place <= %(each)s ORDER BY served_at NULLS FIRST, id
    LIMIT GREATEST(%(total)s - (SELECT COALESCE(sum(number), 0) FROM busy), 0)::int
)
UPDATE accounts_webhook SET busy_until = %(until)s
WHERE id IN (SELECT id FROM accounts_webhook WHERE id IN (SELECT id FROM chosen) FOR NO KEY UPDATE SKIP LOCKED)
  AND COALESCE(busy_until, %(now)s) <= %(now)s
RETURNING id
"""


def dispatch() -> list[int]:
    """Take webhooks that have something to deliver, and start a task for each; return their ids."""
    now = timezone.now()
    with connection.cursor() as cursor:
        cursor.execute(TAKE, {"now": now, "until": now + BUSY, "each": EACH, "total": AT_ONCE})
        taken = sorted(row[0] for row in cursor.fetchall())
    for webhook_id in taken:
        publish(partial(app.send_task, TASK, args=[webhook_id]))
    return taken


def prune() -> int:
    """Delete what ended 30 days ago, or as long as KEEP_DAYS_OF says; return how many there were."""
    days, gone = settings.KEEP_DAYS_OF.get("webhooks", LOG_KEPT_DAYS), 0
    if not days:
        return 0
    over = Delivery.objects.filter(ended_at__lt=timezone.now() - timedelta(days=days))
    while ids := list(over.order_by("ended_at").values_list("pk", flat=True)[:SLICE]):
        gone += Delivery.objects.filter(pk__in=ids).delete()[0]
    return gone
