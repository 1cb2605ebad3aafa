"""Lets follow-ups into the queue: for messages that were sent and not answered, step after step.

What finds no room makes no row: the next pass finds it again, until it would be too late for it.
"""

import random
from collections import Counter
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import connection, transaction
from django.utils import timezone

from accounts.models import Recipient
from reminders.follow_ups import queue, rules
from reminders.follow_ups.rules import Reason, Refusal
from reminders.leaving import spoke_since
from reminders.models import FollowUp
from reminders.models.followup import Urgency

BATCH = 1000

# The first step of messages that were sent, and the next step of follow-ups that were. A message that nobody is
# sure about counts as sent. The wait counts from when it had landed; who spoke since it left has answered it.
CANDIDATES = """
WITH steps AS (
    SELECT s.id, s.reminder_id, s.after_hours, s.urgency,
           COALESCE(m.follow_up_max_attempts, %(most_attempts)s) AS most_attempts,
           lag(s.id) OVER steps_of_one AS step_before,
           row_number() OVER steps_of_one = 1 AS comes_first,
           %(now)s - make_interval(secs => (s.after_hours + %(latest)s) * 3600) AS too_old
    FROM reminders_followupstep s JOIN reminders_reminder m ON m.id = s.reminder_id
    WHERE m.archived_at IS NULL AND m.status <> 'off'
    WINDOW steps_of_one AS (PARTITION BY s.reminder_id ORDER BY s.position)
), wanted AS (
    SELECT * FROM steps WHERE urgency = 'high' OR NOT %(high_only)s
)
SELECT found.*, COALESCE((
    SELECT min(a.at) FROM activity_attempt a WHERE a.target_id = found.message AND a.outcome IN ('sent', 'unknown')
), found.since) AS left_at
FROM (
    (SELECT w.id, t.id, t.recipient_id, w.urgency, w.after_hours, w.most_attempts, t.settled_at AS since,
            t.id AS message
     FROM wanted w
     JOIN delivery_run r ON r.reminder_id = w.reminder_id AND r.kind = 'reminder' AND r.sent + r.unconfirmed > 0
      AND (r.finished_at IS NULL OR r.finished_at > w.too_old)
     JOIN delivery_runtarget t ON t.run_id = r.id AND t.status IN ('sent', 'unconfirmed') AND t.settled_at > w.too_old
     WHERE w.comes_first AND NOT EXISTS (SELECT 1 FROM reminders_followup f WHERE f.target_id = t.id)
     LIMIT %(most)s)
    UNION ALL
    (SELECT w.id, f.target_id, f.recipient_id, w.urgency, w.after_hours, w.most_attempts, f.ended_at, f.sent_as_id
     FROM wanted w
     JOIN reminders_followup f ON f.step_id = w.step_before AND f.status = 'sent' AND f.ended_at > w.too_old
     WHERE NOT EXISTS (SELECT 1 FROM reminders_followup g WHERE g.target_id = f.target_id AND g.step_id = w.id)
     LIMIT %(most)s)
) found
ORDER BY urgency <> 'high', since LIMIT %(most)s
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A step that is next for a message without a reply: it left at `left_at`, and had landed at `since`."""

    step_id: int
    target_id: int
    recipient_id: int
    urgency: str
    after: timedelta
    most_attempts: int
    since: datetime
    left_at: datetime

    def row(self, **values: object) -> FollowUp:
        due_at = self.since + self.after
        known = {"step_id": self.step_id, "target_id": self.target_id, "recipient_id": self.recipient_id}
        return FollowUp(**{**known, "urgency": self.urgency, "due_at": due_at, **values})


@transaction.atomic
def enter(*, now: datetime | None = None, rng: random.Random | None = None) -> int:
    """Queue what may be queued, until the queue is full; how many entered.

    Who must not get one gets a row all the same, removed, with the reason.
    """
    now, rng = now or timezone.now(), rng or random.Random()
    queue.lock()
    size, limits, happened = queue.size(), queue.limits(), Counter[tuple[str, str]]()
    rows, entered, removed = list[FollowUp](), 0, Counter[str]()
    high_only = size > limits.threshold
    candidates = _candidates(now, high_only=high_only) if size < limits.most else []
    if size >= limits.most or high_only:
        happened["follow_ups_refused", Refusal.FULL if size >= limits.most else Refusal.BACKPRESSURE] += 1
    recipients = _locked({candidate.recipient_id for candidate in candidates})
    for candidate in candidates:
        recipient = recipients.get(candidate.recipient_id)
        if recipient is None:
            continue  # somebody speaks to them right now: the next pass sees what came of it
        if reason := _why_not(candidate, recipient, now):
            rows.append(candidate.row(status=FollowUp.Status.REMOVED, removed_reason=reason, ended_at=now))
            removed[reason] += 1
        elif refusal := rules.refused(size=size, high=candidate.urgency == Urgency.HIGH, limits=limits):
            happened["follow_ups_refused", refusal] += 1
        else:
            wait = rules.delay(candidate.after, size=size, limits=limits, rng=rng)
            rows.append(candidate.row(due_at=candidate.since + wait))
            happened["follow_ups_entered", candidate.urgency] += 1
            size, entered = size + 1, entered + 1
    FollowUp.objects.bulk_create(rows)
    queue.tell_removed(removed, by="entry")
    queue.tell_events(happened)
    return entered


def _why_not(candidate: Candidate, recipient: Recipient, now: datetime) -> Reason | None:
    if spoke_since(recipient, candidate.left_at):
        return Reason.REPLIED
    return rules.why_not(queue.contact_of(recipient), now=now, most=candidate.most_attempts)


def _candidates(now: datetime, *, high_only: bool) -> list[Candidate]:
    arguments: dict[str, Any] = {
        "now": now,
        "high_only": high_only,
        "latest": settings.FOLLOW_UP_LATEST_HOURS,
        "most_attempts": settings.FOLLOW_UP_MAX_ATTEMPTS,
        "most": BATCH,
    }
    with connection.cursor() as cursor:
        cursor.execute(CANDIDATES, arguments)
        return [
            Candidate(
                step_id=row[0],
                target_id=row[1],
                recipient_id=row[2],
                urgency=row[3],
                after=timedelta(hours=row[4]),
                most_attempts=row[5],
                since=row[6],
                left_at=row[8],
            )
            for row in cursor.fetchall()
        ]


def _locked(ids: set[int]) -> dict[int, Recipient]:
    """The recipients as they are now, held until this is committed: a reply comes before or after."""
    rows = Recipient.objects.filter(pk__in=ids).order_by("pk")
    return {row.pk: row for row in rows.select_for_update(skip_locked=True, no_key=True)}
