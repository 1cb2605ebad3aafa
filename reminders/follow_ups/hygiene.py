"""Removes follow-ups from the queue that must not be sent any more, every 15 minutes, with the reason (SPEC C5).

Set-based: one statement for the whole queue, however long. The reasons are those of `rules.why_not`, in its order.
Follow-ups that are on their way and have not left, as at night, are taken back for the same reasons.
"""

from collections import Counter
from collections.abc import Mapping
from datetime import datetime, timedelta

from django.conf import settings
from django.db import connection, transaction
from django.utils import timezone

from activity import counters
from delivery import lifecycle
from delivery.models import Run
from reminders.follow_ups import queue
from reminders.follow_ups.rules import Reason
from reminders.models import FollowUp

WHY_NOT = """
    CASE WHEN p.opted_out_at IS NOT NULL THEN 'opted out'
         WHEN p.blocked_at IS NOT NULL THEN 'blocked'
         WHEN p.undeliverable_at IS NOT NULL THEN 'undeliverable'
         WHEN p.archived_at IS NOT NULL THEN 'no longer reachable'
         WHEN p.converted_at IS NOT NULL THEN 'converted'
         WHEN p.cooldown_until > %(now)s THEN 'cooling down'
         WHEN p.cooldown_until IS NULL AND p.attempts >= COALESCE(m.follow_up_max_attempts, %(most)s)
              THEN 'at the maximum'
         WHEN p.cooldown_until IS NULL AND p.not_interested_at IS NOT NULL THEN 'not interested'
         WHEN t.returned_at IS NOT NULL THEN 'message returned'
         WHEN f.step_id IS NULL THEN 'step removed'
         WHEN m.archived_at IS NOT NULL OR m.status = 'off' THEN 'reminder switched off'
         ELSE '' END
"""

JUDGED = f"""
    SELECT f.id, f.recipient_id, {WHY_NOT} AS reason
    FROM reminders_followup f
    JOIN accounts_recipient p ON p.id = f.recipient_id
    JOIN delivery_runtarget t ON t.id = f.target_id
    JOIN delivery_run r ON r.id = t.run_id
    JOIN reminders_reminder m ON m.id = r.reminder_id
"""  # noqa: S608 - made of constants

# Rows locked by a reply are left to that reply.
CLEAN = f"""
WITH judged AS MATERIALIZED (
    {JUDGED} WHERE f.status = 'queued'
), locked AS MATERIALIZED (
    SELECT f.id, j.reason FROM judged j JOIN reminders_followup f ON f.id = j.id
    WHERE j.reason <> '' AND f.status = 'queued'
    FOR NO KEY UPDATE OF f SKIP LOCKED
), removed AS (
    UPDATE reminders_followup f SET status = 'removed', removed_reason = l.reason, ended_at = %(now)s
    FROM locked l WHERE f.id = l.id
    RETURNING l.reason
)
SELECT reason, count(*) FROM removed GROUP BY reason
"""  # noqa: S608 - made of constants

STILL_HERE = f"""
SELECT * FROM (
    {JUDGED} JOIN delivery_runtarget own ON own.id = f.sent_as_id
    WHERE f.status = 'sending' AND (own.status = 'pending' OR (own.status = 'sending' AND own.begun_at IS NULL))
) judged WHERE reason <> '' ORDER BY id LIMIT %(many)s
"""  # noqa: S608 - made of constants

COOLED_DOWN = """
UPDATE accounts_recipient
SET cooldown_until = NULL, not_interested_at = NULL, attempts = 0, attempts_reset_at = %(now)s
WHERE id IN (
    SELECT id FROM accounts_recipient WHERE cooldown_until <= %(now)s
    ORDER BY cooldown_until LIMIT %(most)s FOR NO KEY UPDATE SKIP LOCKED
)
"""

# A recipient at the maximum without a cooldown would never be asked again. Recipients locked by a reply need none:
# the reply waits for queue rows that are locked here, so waiting for it would be a deadlock.
COOL_DOWN = """
UPDATE accounts_recipient SET cooldown_until = %(until)s, not_interested_at = COALESCE(not_interested_at, %(now)s)
WHERE id IN (
    SELECT p.id FROM accounts_recipient p
    WHERE p.attempts >= %(most)s AND p.cooldown_until IS NULL AND p.id IN (
        SELECT f.recipient_id FROM reminders_followup f
        WHERE f.status = 'removed' AND f.ended_at = %(now)s AND f.removed_reason = 'at the maximum'
    )
    FOR NO KEY UPDATE SKIP LOCKED
)
"""

MANY = 50_000
WITHDRAWN_AT_ONCE = 500


@transaction.atomic
def clean(*, now: datetime | None = None) -> Mapping[str, int]:
    """Remove all follow-ups that must not be sent; return how many, by reason."""
    now = now or timezone.now()
    most, cooldown = settings.FOLLOW_UP_MAX_ATTEMPTS, timedelta(hours=settings.FOLLOW_UP_COOLDOWN_HOURS)
    queue.lock()
    with connection.cursor() as cursor:
        cursor.execute(CLEAN, {"now": now, "most": most})
        removed: dict[str, int] = dict(cursor.fetchall())
        if removed.get(Reason.AT_MAXIMUM):
            cursor.execute(COOL_DOWN, {"now": now, "most": most, "until": now + cooldown})
            counters.tell("cooldowns", reason="started", number=cursor.rowcount)
    queue.tell_removed(removed, by="hygiene")
    return removed


@transaction.atomic
def take_back(*, now: datetime | None = None) -> Mapping[str, int]:
    """Take back unsent follow-ups on their way that must not be sent any more; return how many, by reason."""
    now = now or timezone.now()
    queue.lock()
    with connection.cursor() as cursor:
        most = settings.FOLLOW_UP_MAX_ATTEMPTS
        cursor.execute(STILL_HERE, {"now": now, "most": most, "many": WITHDRAWN_AT_ONCE})
        found = cursor.fetchall()
    removed = Counter[str]()
    for follow_up_id, recipient_id, reason in found:
        if lifecycle.withdraw(recipient_id, kind=Run.Kind.FOLLOW_UP, why=reason):
            removed[reason] += FollowUp.objects.filter(
                pk=follow_up_id, status=FollowUp.Status.SENDING
            ).update(status=FollowUp.Status.REMOVED, removed_reason=reason, ended_at=now)
    queue.tell_removed(removed, by="hygiene")
    return removed


def end_cooldowns(*, now: datetime | None = None) -> int:
    """Clear expired cooldowns, with the attempts and the mark that they came from; return how many."""
    with connection.cursor() as cursor:
        cursor.execute(COOLED_DOWN, {"now": now or timezone.now(), "most": MANY})
        ended = int(cursor.rowcount)
    counters.tell("cooldowns", reason="expired", number=ended)
    return ended
