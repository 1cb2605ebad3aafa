"""The index that serves each query, by EXPLAIN ANALYZE on a million run targets and a million ledger rows.

docs/decisions/0003-indexes.md has the table that this prints.
"""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import median
from typing import Any

from django.db import connection, transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from accounts.models import Account, Recipient
from accounts.recipients.search import with_beginnings
from accounts.recipients.states import in_state
from activity.models import Attempt, Notification
from benchmarks.tables import crowd, scratch
from delivery.models import Run, RunAccount, RunTarget
from reminders.models import FollowUp, Reminder

# Tables that grow with every message: no query may read one from end to end.
GROWING = frozenset(
    {
        "accounts_recipient",
        "activity_attempt",
        "activity_notification",
        "delivery_runtarget",
        "reminders_followup",
    }
)

CLAIM = """
    SELECT id FROM delivery_runtarget
    WHERE account_id = %(account)s AND run_id = %(run)s AND status = 'pending' AND not_before <= %(now)s
    ORDER BY not_before, id LIMIT 10 FOR UPDATE SKIP LOCKED
"""
NEXT_RUN = """
    SELECT run.id, first.not_before
    FROM delivery_runaccount share
    JOIN delivery_run run ON run.id = share.run_id AND run.status = 'running'
    CROSS JOIN LATERAL (
        SELECT target.not_before FROM delivery_runtarget target
        WHERE target.account_id = share.account_id AND target.run_id = share.run_id AND target.status = 'pending'
        ORDER BY target.not_before, target.id LIMIT 1
    ) first
    WHERE share.account_id = %(account)s AND share.open
    ORDER BY run.priority DESC, run.fired_at, run.id
"""
RESCUE = """
    SELECT id, account_id, fence FROM delivery_runtarget
    WHERE status = 'sending' AND claimed_at <= %(long_ago)s
"""
DAY_COUNT = """
    SELECT count(*) FROM activity_attempt
    WHERE account_id = %(busiest)s AND action = 'message' AND at >= %(midnight)s
"""
LAST_HOUR = """
    SELECT at FROM activity_attempt
    WHERE account_id = %(busiest)s AND action = 'message' AND at > %(an_hour_ago)s ORDER BY at
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A query of the program, and the index that should serve it."""

    name: str
    index: str
    sql: str
    params: Any

    @classmethod
    def of(cls, name: str, index: str, rows: QuerySet[Any]) -> "Question":
        sql, params = rows.query.sql_with_params()
        return cls(name=name, index=index, sql=sql, params=params)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The plan that the database chose."""

    question: Question
    indexes: frozenset[str]
    read_whole: frozenset[str]
    ms: float

    @property
    def good(self) -> bool:
        return self.question.index in self.indexes and not self.read_whole & GROWING


def questions(now: datetime) -> list[Question]:
    """Return every index of the project, each with the query that needs it."""
    return [*engine(now), *tick(now), *pages(now)]


def engine(now: datetime) -> Iterator[Question]:
    """Yield the queries of a pump."""
    values = {
        "account": 2,
        "run": 1,
        "busiest": 1,
        "now": now,
        "midnight": now - timedelta(hours=12),
        "an_hour_ago": now - timedelta(hours=1),
    }
    for name, index, sql in (
        ("claim the next targets", "target_claim", CLAIM),
        ("an account's next run", "run_account_open", NEXT_RUN),
        ("a day's count", "attempt_limits", DAY_COUNT),
        ("the last hour, to rebuild the limiter", "attempt_limits", LAST_HOUR),
    ):
        yield Question(name=name, index=index, sql=sql, params=values)


def tick(now: datetime) -> Iterator[Question]:
    """Yield the queries of the tick, which runs every few seconds."""
    yield Question.of("accounts to wake", "account_due", Account.objects.due(now).only("id"))
    yield Question.of("reminders that are due", "reminder_due", Reminder.objects.due(now).only("id"))
    yield Question.of("runs whose window closes", "run_closing", Run.objects.closing(now).only("id"))
    yield Question.of("runs whose window opens", "run_opening", Run.objects.opening(now).only("id"))
    yield Question.of("canceled runs with targets left", "run_canceling", Run.objects.canceling().only("id"))
    yield Question.of("runs that wait for another to end", "run_behind", Run.objects.behind().only("id"))
    yield Question(
        name="targets of a dead pump",
        index="target_rescue",
        sql=RESCUE,
        params={"long_ago": now - timedelta(minutes=1)},
    )
    yield Question.of(
        "follow-ups that are due",
        "follow_up_queue",
        FollowUp.objects.filter(status="queued", due_at__lte=now).order_by("due_at", "id")[:100],
    )
    yield Question.of(
        "cooldowns that are over",
        "recipient_cooling_down",
        Recipient.objects.filter(cooldown_until__lte=now).order_by("cooldown_until").only("id"),
    )


def pages(now: datetime) -> Iterator[Question]:
    """Yield the queries of an operator's pages, 50 rows at a time; the owner has the busiest account."""
    owner = 2
    for name, index, rows in (
        ("reminders, newest first", "reminder_by_owner", Reminder.objects.filter(owner=owner, id__lt=1_900)),
        ("runs, newest first", "run_by_owner", Run.objects.filter(owner=owner, id__lt=1_900)),
        (
            "runs of one status, newest first",
            "run_by_owner_status",
            Run.objects.filter(owner=owner, status="success", id__lt=1_900),
        ),
        (
            "runs of one kind, newest first",
            "run_by_owner_kind",
            Run.objects.filter(owner=7, kind="follow_up", id__lt=1_900),
        ),
        (
            "a run's targets of one status",
            "target_by_status",
            RunTarget.objects.filter(run=1, status="pending", id__gt=500),
        ),
        (
            "runs of an account, newest first",
            "run_account_newest",
            RunAccount.objects.filter(account=1).order_by("-run_id"),
        ),
        (
            "follow-ups that were sent or removed, newest first",
            "follow_up_over",
            FollowUp.objects.filter(status="sent", ended_at__gt=now - timedelta(days=7)).order_by(
                "-ended_at"
            ),
        ),
        (
            "troubles of an account, newest first",
            "attempt_trouble",
            Attempt.objects.filter(account=1, at__gt=now - timedelta(days=30))
            .exclude(outcome="sent")
            .order_by("-at"),
        ),
        (
            "the message of a receipt",
            "target_by_provider_id",
            RunTarget.objects.filter(account=1, provider_id__in=["m-7", "m-8"]).order_by(),
        ),
        (
            "the message of a receipt for one of its earlier parts",
            "target_by_earlier_id",
            RunTarget.objects.filter(
                account=1, earlier_ids__overlap=["m-7", "m-8"], earlier_ids__isnull=False
            ).order_by(),
        ),
        (
            "the last message to a recipient",
            "target_once_per_run_and_item",
            RunTarget.objects.filter(recipient=7).order_by("-run_id"),
        ),
        ("attempts, newest first", "attempt_of_owner", _attempts(owner, before=now - timedelta(hours=2))),
        ("attempts of everybody, newest first", "attempt_by_time", Attempt.objects.order_by("-at", "-id")),
        ("attempts of a run, newest first", "attempt_by_run", Attempt.objects.filter(run=1).order_by("-id")),
        ("recipients by name", "recipient_by_name", _recipients(after="Group 5").filter(owner=owner)),
        ("recipients of everybody by name", "recipient_of_anybody", _recipients(after="Group 5")),
        (
            "recipients in one state by name",
            "recipient_set_apart",
            in_state(Recipient.objects.filter(owner=owner), "cooling_down").order_by("name", "id"),
        ),
        (
            "recipients by the beginning of a word",
            "recipient_search",
            with_beginnings(Recipient.objects.filter(owner=owner), ["7501"]),
        ),
        ("notifications, newest first", "notification_feed", Notification.objects.filter(owner=owner)),
        (
            "unread notifications",
            "notification_unread",
            Notification.objects.filter(owner=owner, read_at=None),
        ),
    ):
        yield Question.of(name, index, rows[:50])


def _attempts(owner: int, *, before: datetime) -> QuerySet[Attempt]:
    """Return the query for a page: the time bounds the index, the id decides between equal times."""
    beyond = Q(at__lte=before) & (Q(at__lt=before) | Q(id__lt=1_000))
    return Attempt.objects.filter(beyond, owner=owner).order_by("-at", "-id")


def _recipients(*, after: str) -> QuerySet[Recipient]:
    beyond = Q(name__gte=after) & (Q(name__gt=after) | Q(id__gt=1_000))
    return Recipient.objects.filter(beyond).order_by("name", "id")


def ask(question: Question, *, times: int = 5) -> Answer:
    """Let the database explain and time one query, and release the locks it takes."""
    plans, whole = [_explain(question) for _ in range(times)], _wholes()
    nodes = list(_nodes(plans[-1]["Plan"]))
    indexes = [node["Index Name"] for node in nodes if "Index Name" in node]
    read = [node["Relation Name"] for node in nodes if node["Node Type"] == "Seq Scan" and _rows(node)]
    return Answer(
        question=question,
        indexes=frozenset(whole.get(name, name) for name in indexes),
        read_whole=frozenset(whole.get(name, name) for name in read),
        ms=median(plan["Planning Time"] + plan["Execution Time"] for plan in plans),
    )


def _wholes() -> Mapping[str, str]:
    """Return the table or index of which each part of a divided one is a part."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT relname, inhparent::regclass::text FROM pg_inherits JOIN pg_class c ON c.oid = inhrelid"
        )
        return dict(cursor.fetchall())


def _rows(node: Mapping[str, Any]) -> float:
    """Return how many rows a scan looked at: a table of a month to come is empty."""
    return float(node["Actual Rows"] + node.get("Rows Removed by Filter", 0))


def _explain(question: Question) -> Mapping[str, Any]:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {question.sql}", question.params)
        plan: Mapping[str, Any] = cursor.fetchone()[0][0]
        transaction.set_rollback(True)
    return plan


def _nodes(node: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield node
    for child in node.get("Plans", ()):
        yield from _nodes(child)


def main(argv: Sequence[str]) -> dict[str, object]:
    parser = argparse.ArgumentParser(prog="python -m benchmarks plans", description=__doc__)
    parser.add_argument("--targets", type=int, default=1_000_000)
    parser.add_argument("--attempts", type=int, default=1_000_000)
    options = parser.parse_args(argv)
    with scratch.database("plans"):
        crowd.fill(crowd.Size(targets=options.targets, attempts=options.attempts))
        with connection.cursor() as cursor:
            cursor.execute("VACUUM")
        answers = [ask(question) for question in questions(timezone.now())]
    _print(answers)
    return {
        "ok": all(answer.good for answer in answers),
        "targets": options.targets,
        "attempts": options.attempts,
        "ms": {answer.question.name: round(answer.ms, 2) for answer in answers},
    }


def _print(answers: Sequence[Answer]) -> None:
    print("| query | index | ms |\n|---|---|---:|")
    for answer in answers:
        used = answer.question.index
        if not answer.good:
            whole = ", ".join(sorted(answer.read_whole)) or "no table whole"
            used = f"NOT {used}: {', '.join(sorted(answer.indexes)) or 'no index'}, reads {whole}"
        print(f"| {answer.question.name} | `{used}` | {answer.ms:.2f} |")
