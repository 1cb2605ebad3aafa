"""Fills a database with the rows of a busy year.

Rows in thousands are made by the models; rows in millions by the database itself, in crowd.sql. All rows that others
refer to have the ids 1 to n, so that the two fit together.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from django.db import connection
from django.db.models import Max, Model
from django.utils import timezone

from accounts.models import Account, TeamMate, User
from delivery.models import Run, RunAccount
from delivery.states import PauseReason, RunStatus
from reminders.models import FollowUpStep, Part, Reminder, ReminderAccount

OPERATOR = 2  # the owner of the busiest account
LETTER = "Hello {{ name }}, see you at {{ place }}."
SQL = Path(__file__).with_suffix(".sql")


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """The approximate number of rows; recipients and follow-ups come with the targets."""

    targets: int
    attempts: int
    owners: int = 100
    accounts: int = 500
    runs: int = 2_000

    @property
    def draft(self) -> int:
        """Return the id of the reminder that names a long address book."""
        return self.runs + 1

    @property
    def by_tag(self) -> int:
        """Return the id of the reminder that goes to the same people by a tag."""
        return self.runs + 2

    @property
    def biggest_run(self) -> int:
        return self.targets // 10

    @property
    def others(self) -> int:
        """Return the number of recipients that are not in the long address book."""
        return max(self.biggest_run, self.per_run)

    @property
    def per_run(self) -> int:
        """Return the number of targets of each of the other runs."""
        return -(-(self.targets - self.biggest_run) // (self.runs - 1))

    def owner_of(self, n: int) -> int:
        return 1 + n % self.owners


def fill(size: Size) -> None:
    """Fill the tables, which must be empty, and analyze them for the planner."""
    now = timezone.now()
    _store(User(id=n, username=f"operator-{n}", password="!") for n in range(1, size.owners + 1))
    _store(TeamMate(owner_id=n, mate_id=n + 1) for n in range(1, size.owners))
    _store(_accounts(size, now))
    _store(_reminders(size, now))
    _store(_runs(size, now))
    _store(_shares(size))
    _store(_to_many(size))
    _store(Part(reminder_id=pk, text=LETTER) for pk in (size.draft, size.by_tag))
    _store(ReminderAccount(reminder_id=pk, account_id=1) for pk in (size.draft, size.by_tag))
    _store([FollowUpStep(id=1, reminder_id=1, after_hours=24, text="Still interested?")])
    values = {
        "targets": size.targets,
        "attempts": size.attempts,
        "owners": size.owners,
        "accounts": size.accounts,
        "runs": size.runs,
        "recipients": size.others,
        "audience": size.biggest_run,
        "operator": OPERATOR,
        "draft": size.draft,
        "by_tag": size.by_tag,
    }
    with connection.cursor() as cursor:
        cursor.execute(SQL.read_text(), values)
        cursor.execute("ANALYZE")


def _store(rows: Iterable[Model]) -> None:
    """Insert rows with their ids, and let later rows continue from there."""
    made: list[Any] = list(rows)
    model = type(made[0])
    model._default_manager.bulk_create(made, batch_size=1_000)
    last = model._default_manager.aggregate(last=Max("id"))["last"]
    with connection.cursor() as cursor:
        cursor.execute("SELECT setval(pg_get_serial_sequence(%s, 'id'), %s)", [model._meta.db_table, last])


def _accounts(size: Size, now: datetime) -> Iterator[Account]:
    """Yield the accounts. Every twentieth sleeps until a wake-up; a few of these are due."""
    for n in range(1, size.accounts + 1):
        yield Account(
            id=n,
            owner_id=size.owner_of(n),
            name=f"account-{n}",
            channel="whatsapp",
            transport="sandbox",
            status="active",
            profile="whatsapp_established",
            as_before=True,  # without a daily cap
            wake_at=now + timedelta(minutes=n % 60 - 5) if n % 20 == 0 else None,
        )


def _reminders(size: Size, now: datetime) -> Iterator[Reminder]:
    """Yield as many reminders as runs; a few are due."""
    for n in range(1, size.runs + 1):
        yield Reminder(
            id=n,
            owner_id=size.owner_of(n),
            name=f"reminder-{n}",
            status="scheduled",
            schedule="cron",
            cron="0 9 * * *",
            next_fire_at=now + timedelta(minutes=n % 1440 - 3),
        )


def _to_many(size: Size) -> Iterator[Reminder]:
    """Yield a draft and a scheduled reminder, for the long address book that crowd.sql makes."""
    draft, scheduled = Reminder.Status.DRAFT, Reminder.Status.SCHEDULED
    for pk, status in ((size.draft, draft), (size.by_tag, scheduled)):
        yield Reminder(
            id=pk, owner_id=OPERATOR, name=f"to-many-{pk}", status=status, schedule=Reminder.Schedule.BY_HAND
        )


def _runs(size: Size, now: datetime) -> Iterator[Run]:
    """Yield the runs. Of a hundred, two are running, one is paused, one waits and five are follow-ups.

    The first holds a tenth of all targets.
    """
    for n in range(1, size.runs + 1):
        status, total = _status_of(n), size.biggest_run if n == 1 else size.per_run
        fired_at = now - timedelta(minutes=10 * n)
        yield Run(
            id=n,
            reminder_id=n,
            owner_id=size.owner_of(n),
            kind=Run.Kind.FOLLOW_UP if n % 20 == 7 else Run.Kind.REMINDER,
            due_at=fired_at,
            fired_at=fired_at,
            name=f"reminder-{n}",
            action="message",
            parts=[],
            zone="UTC",
            window_start_hour=6,
            window_end_hour=18,
            send_days=127,
            status=status,
            pause_reason=PauseReason.WINDOW_CLOSED if status is RunStatus.PAUSED else "",
            opens_at=now + timedelta(hours=n % 7 - 1)
            if status in (RunStatus.PAUSED, RunStatus.QUEUED)
            else None,
            closes_at=now + timedelta(hours=n % 13 - 1) if status is RunStatus.RUNNING else None,
            total=total,
            **_counters(status, total),
        )


def _status_of(n: int) -> RunStatus:
    among_hundred = {
        1: RunStatus.RUNNING,
        51: RunStatus.RUNNING,
        2: RunStatus.PAUSED,
        3: RunStatus.QUEUED,
    }
    return among_hundred.get(n % 100, RunStatus.PARTIAL if n % 10 == 4 else RunStatus.SUCCESS)


def _counters(status: RunStatus, total: int) -> dict[str, int]:
    """Return the counters as crowd.sql sets them: three of a running run are in flight, one of a partial run failed."""
    match status:
        case RunStatus.RUNNING:
            return {"sending": 3, "pending": total - 3}
        case RunStatus.PARTIAL:
            return {"failed": 1, "sent": total - 1}
        case RunStatus.SUCCESS:
            return {"sent": total}
        case _:
            return {"pending": total}


def _shares(size: Size) -> Iterator[RunAccount]:
    """Yield the accounts of runs: run n is served by account n, in rotation."""
    for n in range(1, size.runs + 1):
        open_ = _status_of(n) in (RunStatus.RUNNING, RunStatus.PAUSED, RunStatus.QUEUED)
        yield RunAccount(id=n, run_id=n, account_id=1 + n % size.accounts, open=open_)
