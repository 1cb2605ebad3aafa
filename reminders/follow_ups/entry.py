"""Adds follow-ups to the queue for messages that were sent and not answered, step after step.

A follow-up without room in the queue makes no row: the next pass finds it again, until it is too late.
"""

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import connection, transaction
from django.utils import timezone

from accounts.models import Recipient
from reminders.conversations.answered import spoke_since
from reminders.follow_ups import queue, rules
from reminders.follow_ups.rules import Reason, Refusal
from reminders.models import FollowUp
from reminders.models.followup import Urgency

BATCH = 1000

# The first step after sent messages, and the next step after sent follow-ups. An unconfirmed message
# counts as sent; one that came back gets no follow-up (SPEC L4). The wait counts from its landing; people who wrote
# since it left have answered it. Each owner is queried separately, in turn: otherwise thousands of one owner's rows
# would fill the batch.
CANDIDATES = """
WITH steps AS (
    SELECT s.id, s.reminder_id, m.owner_id, s.after_hours, s.urgency,
           COALESCE(m.follow_up_max_attempts, %(most_attempts)s) AS most_attempts,
           lag(s.id) OVER steps_of_one AS step_before,
           row_number() OVER steps_of_one = 1 AS comes_first,
           %(now)s - make_interval(secs => (s.after_hours + %(latest)s) * 3600) AS too_old
    FROM reminders_followupstep s JOIN reminders_reminder m ON m.id = s.reminder_id
    WHERE m.archived_at IS NULL AND m.status <> 'off'
    WINDOW steps_of_one AS (PARTITION BY s.reminder_id ORDER BY s.position)
), wanted AS (
    SELECT * FROM steps
    WHERE owner_id <> ALL(%(full)s) AND (urgency = 'high' OR owner_id <> ALL(%(pressed)s))
), owners AS (
    SELECT DISTINCT owner_id FROM wanted
)
SELECT found.*, COALESCE((
    SELECT min(a.at) FROM activity_attempt a WHERE a.target_id = found.message AND a.outcome IN ('sent', 'unknown')
), found.since) AS left_at
FROM owners CROSS JOIN LATERAL (
    (SELECT w.id, t.id, t.recipient_id, w.urgency, w.after_hours, w.most_attempts, t.settled_at AS since,
            t.id AS message
     FROM wanted w
     JOIN delivery_run r ON r.reminder_id = w.reminder_id AND r.kind = 'reminder' AND r.sent + r.unconfirmed > 0
      AND (r.finished_at IS NULL OR r.finished_at > w.too_old)
     JOIN delivery_runtarget t ON t.run_id = r.id AND t.status IN ('sent', 'unconfirmed') AND t.settled_at > w.too_old
      AND t.returned_at IS NULL
     WHERE w.owner_id = owners.owner_id AND w.comes_first
      AND NOT EXISTS (SELECT 1 FROM reminders_followup f WHERE f.target_id = t.id)
     LIMIT %(most)s)
    UNION ALL
    (SELECT w.id, f.target_id, f.recipient_id, w.urgency, w.after_hours, w.most_attempts, f.ended_at, f.sent_as_id
     FROM wanted w
     JOIN reminders_followup f ON f.step_id = w.step_before AND f.status = 'sent' AND f.ended_at > w.too_old
     WHERE w.owner_id = owners.owner_id
      AND NOT EXISTS (SELECT 1 FROM reminders_followup g WHERE g.target_id = f.target_id AND g.step_id = w.id)
      AND NOT EXISTS (SELECT 1 FROM delivery_runtarget b
                      WHERE b.id IN (f.target_id, f.sent_as_id) AND b.returned_at IS NOT NULL)
     LIMIT %(most)s)
) found
ORDER BY row_number() OVER (PARTITION BY owners.owner_id ORDER BY urgency <> 'high', since), since LIMIT %(most)s
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """The next step for a message without a reply, which left at `left_at` and had landed at `since`."""

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
    """Queue follow-ups until each owner's part of the queue is full; return how many entered.

    A recipient who must not get one still gets a row, removed, with the reason.
    """
    now, rng = now or timezone.now(), rng or random.Random()
    queue.lock()
    sizes, limits, happened = queue.sizes(), queue.limits(), Counter[tuple[str, str]]()
    rows, entered, removed = list[FollowUp](), 0, Counter[str]()
    full = [owner for owner, size in sizes.items() if size >= limits.most]
    pressed = [owner for owner, size in sizes.items() if limits.threshold < size < limits.most]
    for outside, owners in ((Refusal.FULL, full), (Refusal.BACKPRESSURE, pressed)):
        if owners:
            happened["follow_ups_refused", outside] += len(owners)
    candidates = _candidates(now, full=full, pressed=pressed)
    recipients = _locked({candidate.recipient_id for candidate in candidates})
    for candidate in candidates:
        recipient = recipients.get(candidate.recipient_id)
        if recipient is None:
            continue  # a reply of theirs is being handled right now: the next pass sees its result
        size = sizes[recipient.owner_id]
        if reason := _why_not(candidate, recipient, now):
            rows.append(candidate.row(status=FollowUp.Status.REMOVED, removed_reason=reason, ended_at=now))
            removed[reason] += 1
        elif refusal := rules.refused(size=size, high=candidate.urgency == Urgency.HIGH, limits=limits):
            happened["follow_ups_refused", refusal] += 1
        else:
            wait = rules.delay(candidate.after, size=size, limits=limits, rng=rng)
            rows.append(candidate.row(due_at=candidate.since + wait))
            happened["follow_ups_entered", candidate.urgency] += 1
            sizes[recipient.owner_id], entered = size + 1, entered + 1
    FollowUp.objects.bulk_create(rows)
    queue.tell_removed(removed, by="entry")
    queue.tell_events(happened)
    return entered


def _why_not(candidate: Candidate, recipient: Recipient, now: datetime) -> Reason | None:
    if spoke_since(recipient, candidate.left_at):
        return Reason.REPLIED
    return rules.why_not(queue.contact_of(recipient), now=now, most=candidate.most_attempts)


def _candidates(now: datetime, *, full: Sequence[int], pressed: Sequence[int]) -> list[Candidate]:
    """Return the next candidates: none of owners whose part is full, only urgent ones above the threshold."""
    arguments: dict[str, Any] = {
        "now": now,
        "full": list(full),
        "pressed": list(pressed),
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
    """Return the recipients as they are now, locked until the commit: a reply comes before or after."""
    rows = Recipient.objects.filter(pk__in=ids).order_by("pk")
    return {row.pk: row for row in rows.select_for_update(skip_locked=True, no_key=True)}
