"""The plan of each statement of the engine looks rows up by key: on tables that were never analysed, at any number of
rows, and also where it was made while they were empty."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from psycopg import sql

from delivery.engine import claims, recording, rescue, tick, wakeups
from delivery.engine.batching import MOST
from delivery.engine.recording import Intent, Landing, Ledgered
from delivery.engine.shift import changes
from delivery.engine.sql import BY_KEYS
from delivery.states import TargetStatus
from tests.factories import AttemptFactory, LimitFactory, RunAccountFactory, RunTargetFactory

pytestmark = pytest.mark.django_db

RUNS, TARGETS = 600, 40  # so many runs, each of an account of its own, with so many targets
LONG_RUN, LONG = RUNS + 1, 4_000  # one more run of the first account, all pending
TABLES = (
    "accounts_account",
    "accounts_contact",
    "accounts_limit",
    "accounts_recipient",
    "accounts_sendingstop",
    "activity_attempt",
    "activity_inbound",
    "delivery_run",
    "delivery_runaccount",
    "delivery_runtarget",
)
NOW = datetime.now(UTC)
# A ledger of a year: the month of these tests has a table, and so have those around it.
PARTS_OF_THE_LEDGER = (
    "CREATE TABLE fresh.part_rest PARTITION OF fresh.activity_attempt (PRIMARY KEY (id)) DEFAULT",
    """DO $$ BEGIN FOR n IN -10..2 LOOP EXECUTE format(
        'CREATE TABLE fresh.part_%s PARTITION OF fresh.activity_attempt (PRIMARY KEY (id))
         FOR VALUES FROM (%L) TO (%L)',
        n + 10, date_trunc('month', now(), 'UTC') + n * interval '1 month',
        date_trunc('month', now(), 'UTC') + (n + 1) * interval '1 month'); END LOOP; END $$""",
)
SECOND = timedelta(seconds=1)

FILL = """
INSERT INTO accounts_account SELECT (jsonb_populate_record(a, jsonb_build_object(
    'id', n, 'name', n, 'public_id', gen_random_uuid(), 'fence', 1, 'wake_at', now()))).*
FROM public.accounts_account a, generate_series(1, {runs}) n WHERE a.id = {account};

INSERT INTO accounts_limit SELECT (jsonb_populate_record(l, jsonb_build_object('id', n, 'account_id', n))).*
FROM public.accounts_limit l, generate_series(1, {runs}) n WHERE l.account_id = {account};

INSERT INTO accounts_recipient SELECT (jsonb_populate_record(p, jsonb_build_object('id', n, 'address', n))).*
FROM public.accounts_recipient p, generate_series(1, {runs} * {targets} + {long}) n WHERE p.id = {recipient};

INSERT INTO delivery_run SELECT (jsonb_populate_record(r, jsonb_build_object(
    'id', n, 'key', gen_random_uuid(), 'total', {targets}, 'pending', {targets} - 2, 'sending', 2))).*
FROM public.delivery_run r, generate_series(1, {runs}) n WHERE r.id = {run};

INSERT INTO delivery_run SELECT (jsonb_populate_record(r, jsonb_build_object(
    'id', {runs} + 1, 'key', gen_random_uuid(), 'total', {long}, 'pending', {long}))).*
FROM public.delivery_run r WHERE r.id = {run};

INSERT INTO delivery_runaccount SELECT (jsonb_populate_record(s, jsonb_build_object(
    'id', n, 'run_id', n, 'account_id', CASE WHEN n > {runs} THEN 1 ELSE n END))).*
FROM public.delivery_runaccount s, generate_series(1, {runs} + 1) n WHERE s.run_id = {run};

INSERT INTO delivery_runtarget SELECT (jsonb_populate_record(t, jsonb_build_object(
    'id', n, 'recipient_id', n, 'run_id', (n - 1) / {targets} + 1, 'account_id', (n - 1) / {targets} + 1)
    || CASE WHEN mod(n, {targets}) < 2
            THEN '{{"status": "sending", "fence": 1, "claimed_at": "2026-01-01T00:00:00Z"}}' ELSE '{{}}' END::jsonb)).*
FROM public.delivery_runtarget t, generate_series(1, {runs} * {targets}) n WHERE t.id = {target};

INSERT INTO delivery_runtarget SELECT (jsonb_populate_record(t, jsonb_build_object(
    'id', {runs} * {targets} + n, 'recipient_id', {runs} * {targets} + n, 'run_id', {runs} + 1, 'account_id', 1))).*
FROM public.delivery_runtarget t, generate_series(1, {long}) n WHERE t.id = {target};

INSERT INTO accounts_contact (recipient_id, account_id, talked_at)
SELECT n, (n - 1) / {targets} + 1, now() FROM generate_series(1, {runs} * {targets}) n;

INSERT INTO activity_attempt SELECT (jsonb_populate_record(a, jsonb_build_object(
    'id', 1000000 + n, 'run_id', (n - 1) / {targets} + 1, 'account_id', (n - 1) / {targets} + 1, 'target_id', n,
    'at', now() - n * interval '1 second'))).*
FROM public.activity_attempt a, generate_series(1, {runs} * {targets}) n WHERE a.id = {attempt};
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """A statement of the engine with its arguments."""

    sql: str
    arguments: Mapping[str, Any]


def target_of(run: int) -> int:
    """The run's target that is being sent."""
    return run * TARGETS


def statements(many: int) -> dict[str, Statement]:
    """Every statement of the engine, asked about `many` rows."""
    runs = range(1, many + 1)
    intents = [Intent(target_id=target_of(run), part=0, fence=1, wished_at=NOW) for run in runs]
    landings = [
        Landing(
            whose=Ledgered(run_id=run, owner_id=1, account_id=run, action="message"),
            fence=1,
            target_id=target_of(run),
            part=0,
            attempt=1,
            began_at=NOW + timedelta(milliseconds=run),
            took_ms=1,
            outcome="sent",
            provider_id="",
            error="",
            status=TargetStatus.SENT,
            parts_done=1,
            not_before=None,
        )
        for run in runs
    ]
    begin = recording.begin(intents, now=NOW, guard=SECOND, tolerance=SECOND)
    record = recording.record(landings, now=NOW)
    surely = recording.record_surely(landings, now=NOW)
    span = {"since": claims.EARLIEST, "before": claims.LATEST}
    chosen = {"sendable": NOW, "fresh": NOW, "slow": False}
    whole = {"account": 1, "now": NOW}
    let_go: dict[str, Any] = {
        "targets": [target_of(run) for run in runs],
        "fence": 1,
        "now": NOW,
        "begun": True,
    }
    let_go["account"] = None
    claim: dict[str, Any] = {"run": LONG_RUN, "fence": 1, "most": many, "most_new": many, "most_anew": many}
    claim |= {"known_since": NOW, "subscribers": False, "counts_people": True, "today": NOW, "week": NOW}
    claim |= {"counts_chats": True, "most_chats": many}
    reclaim = {
        "fence": 2,
        "idempotent": False,
        "most": 5,
        "files_inside": False,
        "longest": SECOND,
        "longest_with_file": SECOND,
    }
    end = {"fence": 1, "until": NOW, "watchdog": NOW, "reason": "", "detail": "", "marks": "{}"}
    return {
        "begin": Statement(sql=begin.sql, arguments=begin.arguments),
        "record": Statement(sql=record.sql, arguments=record.arguments),
        "record surely": Statement(sql=surely.sql, arguments=surely.arguments),
        "talked": Statement(sql=record.then, arguments=record.arguments),
        "claim": Statement(sql=claims.CLAIM, arguments={**whole, **claim, **span}),
        "let go": Statement(sql=claims.LET_GO, arguments=let_go),
        "next run": Statement(sql=claims.NEXT_RUN, arguments={**whole, **chosen, **span}),
        "reclaim": Statement(sql=rescue.RECLAIM, arguments={**whole, **reclaim}),
        "unsettled": Statement(sql=rescue.UNSETTLED, arguments={"account": 1}),
        "start shift": Statement(
            sql=wakeups.START_SHIFT, arguments={"account": 1, "watchdog": NOW, "nobody": ""}
        ),
        "end shift": Statement(sql=wakeups.END_SHIFT, arguments={**whole, **end}),
        "changes": Statement(sql=changes.SEEN, arguments={"accounts": list(runs)}),
        "due": Statement(sql=tick.DUE, arguments={"now": NOW, "again": NOW, "most": many}),
    }


@pytest.fixture
def empty() -> Iterator[str]:
    """Tables like those of the engine, in a schema of their own: empty, and never analysed."""
    target = RunTargetFactory.create()
    LimitFactory.create(account=target.account)
    RunAccountFactory.create(run=target.run, account=target.account)
    attempt = AttemptFactory.create(target=target)
    with connection.cursor() as cursor:
        cursor.execute("CREATE SCHEMA fresh")
        for table in TABLES:
            divided = "PARTITION BY RANGE (at)" if table == "activity_attempt" else ""
            cursor.execute(
                f"CREATE TABLE fresh.{table} (LIKE public.{table} INCLUDING ALL EXCLUDING CONSTRAINTS) {divided}"
            )
        for statement in PARTS_OF_THE_LEDGER:
            cursor.execute(statement)
        cursor.execute("SET LOCAL search_path = fresh, public")
        cursor.execute("SET LOCAL plan_cache_mode = force_generic_plan")
        cursor.execute(BY_KEYS)
        yield FILL.format(
            runs=RUNS,
            targets=TARGETS,
            long=LONG,
            account=target.account_id,
            recipient=target.recipient_id,
            run=target.run_id,
            target=target.pk,
            attempt=attempt.pk,
        )
        cursor.execute("DEALLOCATE ALL")


TYPES = {int: "bigint", bool: "boolean", datetime: "timestamptz", timedelta: "interval"}


def prepare(name: str, statement: Statement) -> sql.Composed:
    """Prepare a statement as psycopg does, and return what executes it."""
    names = list(dict.fromkeys(re.findall(r"%\((\w+)\)s", statement.sql)))
    numbered = re.sub(r"%\((\w+)\)s", lambda found: f"${names.index(found[1]) + 1}", statement.sql)
    types = ", ".join(TYPES.get(type(statement.arguments[each]), "unknown") for each in names)
    with connection.cursor() as cursor:
        cursor.execute(f"PREPARE {name} ({types}) AS {numbered}")
    values = sql.SQL(", ").join(sql.Literal(statement.arguments[each]) for each in names)
    return sql.SQL("EXECUTE {} ({})").format(sql.Identifier(name), values)


def explain(execute: sql.Composed, *, analyze: bool) -> list[Mapping[str, Any]]:
    """The nodes of the plan; with `analyze`, what each has really read. Nothing stays changed."""
    with connection.cursor() as cursor:
        cursor.execute("SAVEPOINT before")
        options = "ANALYZE, TIMING OFF, FORMAT JSON" if analyze else "FORMAT JSON"
        cursor.execute(sql.SQL(f"EXPLAIN ({options}) ") + execute)
        plan = cursor.fetchone()[0][0]["Plan"]
        cursor.execute("ROLLBACK TO SAVEPOINT before")
    return list(nodes(plan))


def nodes(node: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield node
    for child in node.get("Plans", ()):
        yield from nodes(child)


def read_by(node: Mapping[str, Any]) -> float:
    """The rows that a scan looked at, those that it dropped included."""
    dropped = sum(value for key, value in node.items() if key.startswith("Rows Removed by"))
    return float((node["Actual Rows"] + dropped) * node["Actual Loops"])


def faults(found: Sequence[Mapping[str, Any]], *, most: int) -> list[str]:
    """Return what is wrong with a plan: whole tables that are joined, and scans that read more rows than `most`.

    Lists that a statement made itself count too: one that is read for each row of another takes the product of both.
    """
    joins = [node["Node Type"] for node in found if node["Node Type"] in {"Hash Join", "Merge Join"}]
    scans = [node for node in found if node["Node Type"].endswith("Scan")]
    return joins + [f"{named(node)} reads {read_by(node):.0f} rows" for node in scans if read_by(node) > most]


def named(node: Mapping[str, Any]) -> str:
    names = (node.get(name, "") for name in ("Relation Name", "CTE Name", "Function Name", "Index Name"))
    return " ".join([node["Node Type"], *filter(None, names)])


@pytest.mark.parametrize("planned", ["while the tables were empty", "when they were full"])
def test_every_statement_looks_rows_up_by_key(empty: str, planned: str) -> None:
    asked = {many: statements(many) for many in (1, 10, 100, MOST)}
    early = planned == "while the tables were empty"
    if early:
        prepared = {
            (many, name): prepare(f"s{many}_{name.replace(' ', '_')}", statement)
            for many, all_ in asked.items()
            for name, statement in all_.items()
        }
        for execute in prepared.values():
            explain(execute, analyze=False)  # this makes the plan, and it is kept
    with connection.cursor() as cursor:
        cursor.execute(empty)
        cursor.execute(
            "SELECT max(reltuples) FROM pg_class WHERE relnamespace = 'fresh'::regnamespace AND relkind = 'r'"
        )
        assert cursor.fetchone() == (-1,), "never analysed"
    if not early:
        prepared = {
            (many, name): prepare(f"s{many}_{name.replace(' ', '_')}", statement)
            for many, all_ in asked.items()
            for name, statement in all_.items()
        }
    wrong = {
        f"{name} of {many}": found
        for (many, name), execute in prepared.items()
        if (found := faults(explain(execute, analyze=True), most=4 * many + 2 * TARGETS))
    }
    assert wrong == {}
