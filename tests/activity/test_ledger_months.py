"""The ledger's tables: each row is in its month or in the rest, and nobody waits for a month."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.db import connection, connections, transaction
from django.utils import timezone
from django_celery_beat.models import PeriodicTask
from hypothesis import given
from hypothesis import strategies as st

from activity import ledger, ledger_months
from activity.ledger_months import REST, month_of, next_month, table_of
from activity.models import Attempt
from activity.pruning import prune, rows
from activity.tasks import make_ledger_months
from delivery.engine import recording
from delivery.engine.recording import Landing, Ledgered
from delivery.engine.sql import run as ask
from delivery.models import RunTarget
from delivery.states import TargetStatus
from tests.factories import AccountFactory, AttemptFactory, RunFactory, RunTargetFactory

MOMENT = timedelta(microseconds=1)
# Months that no other test uses, far behind those that the migration made.
MAY = datetime(2041, 5, 1, tzinfo=UTC)
JUNE = datetime(2041, 6, 1, tzinfo=UTC)


def tables() -> dict[int, str]:
    """The table of each row, by its id."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT id, tableoid::regclass::text FROM activity_attempt")
        return dict(cursor.fetchall())


@given(st.floats(min_value=0, max_value=7e9).map(lambda seconds: datetime.fromtimestamp(seconds, UTC)))
def test_every_moment_is_in_one_month(moment: datetime) -> None:
    month = month_of(moment)
    assert month <= moment < next_month(month)
    assert month_of(next_month(month) - MOMENT) == month
    assert (next_month(month).day, next_month(month).hour) == (1, 0)


@pytest.mark.django_db
def test_the_present_and_the_next_three_months_are_there_from_the_start() -> None:
    assert ledger_months.missing(timezone.now()) == []


@pytest.mark.django_db
def test_at_the_end_of_a_month_each_row_goes_to_its_own_and_counts_go_on() -> None:
    assert ledger_months.make_ahead(MAY) == []
    account = AccountFactory.create()
    last, first = (AttemptFactory.create(account=account, at=at) for at in (JUNE - MOMENT, JUNE))
    assert tables() == {last.pk: table_of(MAY), first.pk: table_of(JUNE)}
    assert ledger.count_since(account.pk, "message", since=JUNE - timedelta(hours=1)) == 2
    assert ledger.latest_times(account.pk, "message", most=5) == [JUNE - MOMENT, JUNE]
    assert list(Attempt.objects.all()) == [first, last], "the newest first, as everywhere"
    assert Attempt.objects.get(pk=last.pk).at == JUNE - MOMENT


def land(target: RunTarget, at: datetime) -> None:
    """Record a message as the engine does."""
    whose = Ledgered(
        run_id=target.run_id, owner_id=target.run.owner_id, account_id=target.account_id, action="message"
    )
    landing = Landing(
        whose=whose,
        fence=target.fence or 0,
        target_id=target.pk,
        part=0,
        attempt=1,
        began_at=at,
        took_ms=1,
        outcome="sent",
        provider_id="",
        error="",
        status=TargetStatus.SENT,
        parts_done=1,
        not_before=None,
    )
    ask(recording.record_surely([landing], now=at))


@pytest.mark.django_db
def test_the_engine_records_in_a_month_that_has_no_table_and_the_row_is_moved_when_it_has() -> None:
    target = RunTargetFactory.create(run=RunFactory.create(sending=1), begun=True)
    land(target, MAY)
    [pk] = tables()
    assert tables() == {pk: REST}
    target.refresh_from_db()
    assert target.status == "sent"
    before = Attempt.objects.values().get()

    assert ledger_months.make_ahead(MAY) == []
    assert tables() == {pk: table_of(MAY)}
    assert Attempt.objects.values().get() == before
    land(target, MAY)
    assert len(tables()) == 1, "known already, in whichever table"


@pytest.mark.django_db
def test_a_month_that_is_over_gets_its_table_too_where_the_rest_has_rows_of_it() -> None:
    AttemptFactory.create(at=MAY)
    AttemptFactory.create(at=JUNE)
    assert ledger_months.missing(JUNE + timedelta(days=60))[:3] == [
        MAY,
        JUNE,
        datetime(2041, 7, 1, tzinfo=UTC),
    ]
    assert ledger_months.make_ahead(JUNE + timedelta(days=60)) == []
    assert set(tables().values()) == {table_of(MAY), table_of(JUNE)}


@pytest.mark.django_db
def test_no_month_is_made_while_too_many_rows_would_have_to_be_moved() -> None:
    for _ in range(3):
        AttemptFactory.create(at=MAY)
    assert not ledger_months.make(MAY, most=2)
    assert set(tables().values()) == {REST}
    assert ledger_months.make(MAY, most=None)
    assert set(tables().values()) == {table_of(MAY)}


@pytest.mark.django_db
def test_months_that_are_over_are_removed_whole_and_the_rest_in_slices(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rows, "SLICE", 2)
    ledger_months.make_ahead(MAY)
    for at in (MAY, MAY, MAY, JUNE, JUNE + timedelta(days=20)):
        AttemptFactory.create(at=at)
    border = JUNE + timedelta(days=10)
    assert rows.old_attempts(border).count() == 4
    assert [number for number in rows.remove_attempts(border) if number] == [3, 1]
    assert list(Attempt.objects.values_list("at", flat=True)) == [JUNE + timedelta(days=20)]
    assert table_of(MAY) not in {part.table for part in ledger_months.parts()}
    assert table_of(JUNE) in {part.table for part in ledger_months.parts()}


@pytest.mark.django_db
def test_beat_makes_the_months() -> None:
    for month in list(ledger_months.parts())[-2:]:
        if month.table != "activity_attempt_before":
            ledger_months.drop(month)
    make_ledger_months()
    assert ledger_months.missing(timezone.now()) == []
    assert PeriodicTask.objects.filter(task="activity.make_ledger_months").exists()


@pytest.mark.django_db
def test_the_command_lists_the_tables() -> None:
    out = StringIO()
    call_command("ledger_months", stdout=out)
    assert REST in out.getvalue()


@contextmanager
def someone(statement: str) -> Iterator[None]:
    """Another connection that has run a statement, and keeps its transaction open."""
    begun, ended = threading.Event(), threading.Event()

    def work() -> None:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(statement)
            begun.set()
            ended.wait(30)
        connections.close_all()

    thread = threading.Thread(target=work)
    thread.start()
    assert begun.wait(30)
    try:
        yield
    finally:
        ended.set()
        thread.join()


WRITES = """
INSERT INTO activity_attempt (at, owner_id, account_id, action, part, attempt, outcome, provider_id, error, took_ms)
VALUES (now(), 1, 1, 'message', 0, 1, 'sent', '', '', 1)
"""


@pytest.mark.django_db(transaction=True)
def test_making_a_month_waits_for_nobody_who_sends_and_gives_up_where_somebody_reads_for_long() -> None:
    with someone(WRITES):
        assert ledger_months.make(MAY), "a row of another month is not in the way"
    with someone("SELECT count(*) FROM activity_attempt"):
        assert not ledger_months.make(JUNE), "tried again later"
    assert ledger_months.make(JUNE)
    for part in ledger_months.parts():
        if part.table in (table_of(MAY), table_of(JUNE)):
            assert ledger_months.drop(part)


@pytest.mark.django_db(transaction=True)
def test_a_month_stays_while_somebody_reads_it() -> None:
    ledger_months.make(MAY)
    [part] = [part for part in ledger_months.parts() if part.table == table_of(MAY)]
    with someone("SELECT count(*) FROM activity_attempt"):
        assert not ledger_months.drop(part)
    assert ledger_months.drop(part)


@pytest.mark.django_db
def test_the_command_says_what_is_in_the_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger_months, "make", lambda *_, **__: False)
    monkeypatch.setattr(ledger_months, "missing", lambda _: [MAY])
    with pytest.raises(CommandError, match="activity_attempt_2041_05"):
        call_command("ledger_months", stdout=StringIO())


@pytest.mark.django_db
def test_a_dry_run_counts_what_pruning_removes() -> None:
    ledger_months.make_ahead(MAY)
    AttemptFactory.create(at=MAY)
    border = JUNE + timedelta(days=10)
    assert prune.would_remove(border)["ledger rows"] == 1
    assert sum(rows.remove_attempts(border)) == 1
