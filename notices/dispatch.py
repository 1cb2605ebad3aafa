"""Gives addresses with due notices to workers: few at once, so that slow services leave the workers to the sending.

At most `AT_ONCE` addresses of all people are served at the same time, and at most `EACH` of one person. Those that
waited longest come first.
"""

from datetime import timedelta
from functools import partial

from django.conf import settings
from django.db import connection
from django.utils import timezone

from config.celery import app
from config.redis.publishing import publish
from notices.deliver import BUSY
from notices.models import Notice

TASK = "notices.deliver"
AT_ONCE, EACH = 4, 1
LOG_KEPT_DAYS = 30  # unless KEEP_DAYS_OF says otherwise
SLICE = 5_000

TAKE = """
WITH busy AS MATERIALIZED (
    SELECT person_id, count(*) AS number FROM notices_noticeaddress WHERE busy_until > %(now)s GROUP BY person_id
), due AS (
    SELECT a.id, a.served_at,
           row_number() OVER (PARTITION BY a.person_id ORDER BY a.served_at NULLS FIRST, a.id)
           + COALESCE((SELECT number FROM busy WHERE busy.person_id = a.person_id), 0) AS place
    FROM notices_noticeaddress a JOIN accounts_user u ON u.id = a.person_id AND u.is_active
    WHERE a.switched_off_at IS NULL AND COALESCE(a.retry_at, %(now)s) <= %(now)s
      AND COALESCE(a.busy_until, %(now)s) <= %(now)s
      AND EXISTS (SELECT 1 FROM notices_notice n
                  WHERE n.address_id = a.id AND n.state = 'pending' AND n.due_at <= %(now)s)
), chosen AS (
    SELECT id FROM due WHERE place <= %(each)s ORDER BY served_at NULLS FIRST, id
    LIMIT GREATEST(%(total)s - (SELECT COALESCE(sum(number), 0) FROM busy), 0)::int
)
UPDATE notices_noticeaddress SET busy_until = %(until)s
WHERE id IN (
    SELECT id FROM notices_noticeaddress WHERE id IN (SELECT id FROM chosen) FOR NO KEY UPDATE SKIP LOCKED
) AND COALESCE(busy_until, %(now)s) <= %(now)s
RETURNING id
"""


def take() -> list[int]:
    """Hold addresses that have something to send, for this process or a task; return their ids."""
    now = timezone.now()
    with connection.cursor() as cursor:
        cursor.execute(TAKE, {"now": now, "until": now + BUSY, "each": EACH, "total": AT_ONCE})
        return sorted(row[0] for row in cursor.fetchall())


def dispatch() -> list[int]:
    """Take addresses, and start a task for each; return their ids."""
    taken = take()
    for address_id in taken:
        publish(partial(app.send_task, TASK, args=[address_id]))
    return taken


def forget() -> int:
    """Delete what ended 30 days ago, or as long as KEEP_DAYS_OF says; return how many there were."""
    days, gone = settings.KEEP_DAYS_OF.get("notices", LOG_KEPT_DAYS), 0
    if not days:
        return 0
    over = Notice.objects.filter(ended_at__lt=timezone.now() - timedelta(days=days))
    while ids := list(over.order_by("ended_at").values_list("pk", flat=True)[:SLICE]):
        gone += Notice.objects.filter(pk__in=ids).delete()[0]
    return gone
