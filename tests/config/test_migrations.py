"""Every migration since the last release can be applied while that release is still running."""

import tomllib
from importlib import import_module

import pytest
from django.db import models
from django.db.migrations import AddField, Migration, RemoveField, RenameField, RunPython, RunSQL
from django.db.migrations.loader import MigrationLoader

from tests.config.migration_safety import Reading, problems_of
from tests.config.programs import PROJECT

# The last migrations of the last release. A new release sets its version and its last migrations, and empties ALLOWED.
RELEASE = "0.2.0"
LAST = {
    "accounts": "0011_sending_stops",
    "activity": "0010_what_a_message_answers",
    "delivery": "0014_sessions_of_accounts",
    "reminders": "0003_plain_words",
}
NEW_APPS = ("api", "audit", "notices", "people", "queues")  # which that release does not have
LONGEST = len("runs a statement that is not known to be safe: ") + 60
ATTACHES = (
    "changes activity_attempt in a way that is not known to be safe: "
    + ("ATTACH PARTITION activity_attempt_before FOR VALUES FROM (MINVALUE) "[:60])
)
EXCHANGE_OF_THE_LEDGER = (
    "SET LOCAL lock_timeout = '3s'",
    "LOCK TABLE activity_attempt IN ACCESS EXCLUSIVE MODE",
    "ALTER SEQUENCE activity_attempt_ids OWNED BY activity_attempt.id",
    *(
        f'ALTER INDEX "{index}" RENAME TO "{index}_before"'
        for index in (
            "activity_attempt_target_id_db686c0a",
            "attempt_by_run",
            "attempt_by_time",
            "attempt_limits",
            "attempt_of_owner",
            "attempt_trouble",
        )
    ),
)


def append_only_statements() -> list[str]:
    """Return the statements of the audit log's trigger, as they are reported."""
    module = import_module("audit.migrations.0002_append_only")
    return [" ".join(statement.split()) for statement in (module.REFUSE, *module.TRIGGERS)]


# What is done nevertheless: the migration, the problem as it is reported, and why the last release survives it.
ALLOWED: dict[tuple[str, str], dict[str, str]] = {
    ("audit", "0002_append_only"): dict.fromkeys(
        (
            f"runs a statement that is not known to be safe: {statement}"[:LONGEST]
            for statement in append_only_statements()
        ),
        "It is about two tables that the release before does not know.",
    ),
    ("accounts", "0031_erased_people"): {
        "adds the rule recipient_address_canonical to accounts_recipient": (
            "It is looser than the one that it replaces, by the hashes of erased people, who are opted out."
        ),
    },
    ("accounts", "0014_caps_of_long_spans"): {
        "adds the rule limit_of_long_spans_at_least_one to accounts_limit": (
            "It is about columns that the release before does not write; empty ones keep the rule."
        ),
    },
    ("activity", "0014_ledger_months"): {
        **dict.fromkeys(
            (
                "adds the rule attempt_before to activity_attempt",
                "validates a rule of activity_attempt in the migration that adds it",
                "runs Python, which cannot be read here",
            ),
            "The rule refuses only what is four weeks and more ahead, and each statement has a transaction of its own; "
            "the Python asks for dates and names, and its statements are all listed here.",
        ),
        **dict.fromkeys(
            (
                ATTACHES,
                "changes the type of activity_attempt.id",
                "renames in activity_attempt: RENAME TO activity_attempt_before",
                *(
                    f"runs a statement that is not known to be safe: {statement}"[:LONGEST]
                    for statement in EXCHANGE_OF_THE_LEDGER
                ),
            ),
            "One transaction of some milliseconds, after which the same name has the same rows and "
            "columns: tests/activity/test_ledger_migration.py runs the last release's statements against it.",
        ),
    },
    ("activity", "0015_canceled_notifications"): {
        "adds the rule notification_kind_known to activity_notification": (
            "It is looser than the one that it replaces, by one kind that the release before does not write."
        ),
    },
    ("activity", "0019_more_kinds"): {
        "adds the rule notification_kind_known to activity_notification": (
            "It is looser than the one that it replaces, by kinds that the release before does not write."
        ),
    },
    ("accounts", "0019_undeliverable"): {
        "adds the rule consent_move_known to accounts_consentchange": (
            "It is looser than the one that it replaces: the release before writes none of the new words."
        ),
    },
    ("accounts", "0021_account_health"): {
        "adds the rule account_health_known to accounts_account": (
            "It is about columns that the release before does not write; their defaults keep the rule."
        ),
    },
    ("delivery", "0025_pauses_for_health"): {
        "adds the rule run_paused_for_a_reason to delivery_run": (
            "It is looser than the one that it replaces: the release before writes none of the new words."
        ),
    },
    ("delivery", "0027_who_talked_last"): {
        "runs Python, which cannot be read here": (
            "It writes only to the new table of contacts, in short steps that wait for nobody."
        ),
    },
    ("delivery", "0028_contents_of_targets"): {
        "adds the rule run_kind_known to delivery_run": (
            "It is looser than the one that it replaces, by one kind that the release before does not write."
        ),
    },
    ("delivery", "0029_several_items_for_one"): {
        "adds the rule target_once_per_run_and_item to delivery_runtarget": (
            "It is looser than the one that it replaces: the release before writes no item, so it says the same to it."
        ),
    },
    ("delivery", "0023_late_failures"): {
        "adds the rule run_returned_were_sent to delivery_run": (
            "It is about a column that the release before does not write, and `sent` only grows."
        ),
        "adds the rule target_returned_of_a_kind to delivery_runtarget": (
            "It is about columns that the release before does not write; their defaults keep the rule."
        ),
    },
    ("accounts", "0023_new_people"): {
        "adds the rule limit_of_new_people_at_least_one to accounts_limit": (
            "It is about columns that the release before does not write; empty ones keep the rule."
        ),
    },
    ("accounts", "0025_roles"): {
        "adds the rule teammate_role_known to accounts_teammate": (
            "It is about a column that the release before does not write; its default keeps the rule."
        ),
        "changes rows of accounts_teammate": (
            "Only the new column, which the release before does not read, and of a table with a few rows."
        ),
    },
    ("accounts", "0027_working_hours"): {
        "adds the rule account_working_hours_whole to accounts_account": (
            "It is about columns that the release before does not write; empty ones keep the rule."
        ),
        "adds the rule account_working_days to accounts_account": (
            "It is about a column that the release before does not write; its default keeps the rule."
        ),
    },
    ("delivery", "0018_success_without_left_out"): {
        "adds the rule run_success_is_all_sent to delivery_run": (
            "It is looser than the one that it replaces: each success of the release before has left nobody out."
        ),
    },
    ("delivery", "0019_single_messages"): {
        "adds the rule run_kind_known to delivery_run": (
            "It is looser than the one that it replaces: the release before writes none but the older kinds."
        ),
    },
    ("reminders", "0007_carriers_of_messages"): {
        "adds the rule reminder_one_carrier to reminders_reminder": (
            "It is about a column that the release before does not write; its default keeps the rule."
        ),
    },
    ("reminders", "0005_beside_paused_runs"): {
        "adds the rule reminder_on_paused_known to reminders_reminder": (
            "It is about a column that the release before does not write; its default keeps the rule."
        ),
    },
}


def new_migrations() -> list[Migration]:
    """Return the migrations of our apps since the last release, in the order in which they are applied."""
    graph = MigrationLoader(None).graph
    ours = {*LAST, *NEW_APPS}
    released = {node for app, name in LAST.items() for node in graph.forwards_plan((app, name))}
    order: list[tuple[str, str]] = []
    for leaf in sorted(graph.leaf_nodes()):
        order += [node for node in graph.forwards_plan(leaf) if node not in order]
    return [graph.nodes[node] for node in order if node[0] in ours and node not in released]


@pytest.mark.django_db(transaction=True)
def test_the_last_release_survives_every_new_migration() -> None:
    graph, reading = MigrationLoader(None).graph, Reading()
    state = graph.make_state(sorted(LAST.items()), at_end=True)
    surprises, known = [], set()
    for migration in new_migrations():
        name = (migration.app_label, migration.name)
        allowed = ALLOWED.get(name, {})
        for problem in problems_of(migration, state, reading):
            known.add((name, problem))
            if problem not in allowed:
                surprises.append(f"{migration}: {problem}")
    assert surprises == [], "docs/deployment.md, Updates, says how to do it in two steps."
    listed = {(name, problem) for name, problems in ALLOWED.items() for problem in problems}
    assert listed - known == set(), "These problems are gone: take them off the list."


def test_every_exception_says_why() -> None:
    assert [reason for problems in ALLOWED.values() for reason in problems.values() if len(reason) < 40] == []


def test_the_list_begins_at_the_last_release() -> None:
    package = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["version"]
    assert package == RELEASE, "A new release: set RELEASE and LAST, and empty ALLOWED."
    assert {app for app in LAST if (PROJECT / app / "migrations").is_dir()} == set(LAST)


class Invented(Migration):
    """Stands for a migration that somebody wrote without thinking of the last release."""

    operations = [
        AddField("reminder", "loud", models.BooleanField(default=False)),
        AddField("reminder", "quiet", models.BooleanField(default=False, db_default=False)),
        AddField("reminder", "mood", models.CharField(max_length=5, null=True)),
        RenameField("reminder", "mood", "tone"),
        RemoveField("reminder", "quiet"),  # which the last release does not know
        RemoveField("reminder", "name"),
        RunPython(RunPython.noop, RunPython.noop),
        RunSQL("UPDATE reminders_reminder SET loud = true; DROP INDEX follow_up_over"),
    ]


@pytest.mark.django_db(transaction=True)
def test_a_migration_without_thought_is_refused_for_each_of_its_faults() -> None:
    state = MigrationLoader(None).project_state()
    assert problems_of(Invented("0099_invented", "reminders"), state, Reading()) == [
        "changes rows of reminders_reminder",
        "drops reminders_reminder.name",
        "drops the index follow_up_over without CONCURRENTLY",
        "renames in reminders_reminder: RENAME COLUMN mood TO tone",
        "runs Python, which cannot be read here",
        "takes the default off reminders_reminder.loud",
    ]


SAFE = [
    'CREATE TABLE "new" ("id" bigint NOT NULL PRIMARY KEY)',
    'ALTER TABLE "delivery_run" ADD COLUMN "note" varchar(10) NULL',
    'ALTER TABLE "delivery_run" ADD COLUMN "note" varchar(10) DEFAULT \'\' NOT NULL',
    'ALTER TABLE "delivery_runtarget" SET (fillfactor = 75)',
    'ALTER TABLE "delivery_runtarget" ALTER COLUMN "error" DROP NOT NULL',
    'ALTER TABLE "delivery_runtarget" DROP CONSTRAINT "target_sane"',
    'ALTER TABLE "delivery_runtarget" VALIDATE CONSTRAINT "target_sane"',
    'CREATE INDEX CONCURRENTLY "by_error" ON "delivery_runtarget" ("error")',
    'DROP INDEX CONCURRENTLY IF EXISTS "by_error"',
    'CREATE INDEX "by_name" ON "accounts_account" ("name")',
    "COMMENT ON TABLE delivery_run IS 'DROP TABLE delivery_run'",
    "-- (no-op)",
]
UNSAFE = [
    ('DROP TABLE "delivery_run" CASCADE', "drops the table delivery_run"),
    ('ALTER TABLE "delivery_run" DROP COLUMN "note" CASCADE', "drops delivery_run.note"),
    ('ALTER TABLE "delivery_run" RENAME COLUMN "note" TO "text"', "renames in delivery_run"),
    ('ALTER TABLE "delivery_run" RENAME TO "delivery_walk"', "renames in delivery_run"),
    ('ALTER TABLE "delivery_run" ADD COLUMN "note" text NOT NULL', "demands a value of delivery_run.note"),
    ('ALTER TABLE "delivery_run" ALTER COLUMN "note" SET NOT NULL', "demands a value of delivery_run.note"),
    ('ALTER TABLE "delivery_run" ALTER COLUMN "note" DROP DEFAULT', "takes the default off"),
    ('ALTER TABLE "delivery_run" ALTER COLUMN "note" TYPE integer', "changes the type"),
    ("ALTER TABLE delivery_run ADD COLUMN n int GENERATED ALWAYS AS (id) STORED", "rewrites delivery_run"),
    (
        'ALTER TABLE "delivery_runtarget" ADD COLUMN "a_id" bigint NULL CONSTRAINT "fk" REFERENCES "a" ("id")',
        "locks delivery_runtarget",
    ),
    ('CREATE INDEX "by_error" ON "delivery_runtarget" ("error")', "without CONCURRENTLY"),
    ('DROP INDEX "by_error"', "without CONCURRENTLY"),
    ('CREATE UNIQUE INDEX CONCURRENTLY "once" ON "delivery_runtarget" ("key")', "adds the rule once"),
    ('ALTER TABLE "delivery_runtarget" ADD CONSTRAINT "c" CHECK (part >= 0)', "without NOT VALID"),
    ('ALTER TABLE "delivery_runtarget" ADD CONSTRAINT "c" CHECK (part >= 0) NOT VALID', "adds the rule c"),
    ('ALTER TABLE "delivery_run" ADD CONSTRAINT "c" UNIQUE ("key")', "adds the rule c"),
    ("UPDATE delivery_run SET note = ''", "changes rows of delivery_run"),
    ("ALTER TABLE delivery_run SET UNLOGGED", "not known to be safe"),
    ("ALTER TABLE activity_attempt ATTACH PARTITION p DEFAULT", "not known to be safe"),
    ("LOCK TABLE delivery_run", "not known to be safe"),
    ("TRUNCATE delivery_run", "not known to be safe"),
]


@pytest.mark.parametrize("statement", SAFE)
def test_a_statement_that_is_safe_beside_the_last_release_passes(statement: str) -> None:
    assert list(Reading().problems(statement)) == []


@pytest.mark.parametrize(("statement", "problem"), UNSAFE)
def test_a_statement_that_the_last_release_would_not_survive_is_named(statement: str, problem: str) -> None:
    assert any(problem in found for found in Reading().problems(statement))


def test_a_table_that_is_new_may_be_changed_in_any_way() -> None:
    reading = Reading()
    assert list(reading.problems('CREATE TABLE "delivery_new" ("id" bigint NOT NULL)')) == []
    for statement in (
        'ALTER TABLE "delivery_new" ADD COLUMN "note" text NOT NULL',
        'CREATE UNIQUE INDEX "once" ON "delivery_new" ("note")',
        'ALTER TABLE "delivery_new" DROP COLUMN "note"',
        'DROP TABLE "delivery_new"',
    ):
        assert list(reading.problems(statement)) == []


def test_a_rule_is_not_validated_under_the_lock_that_adds_it() -> None:
    reading = Reading()
    added = 'ALTER TABLE "delivery_runtarget" ADD CONSTRAINT "c" CHECK (part >= 0) NOT VALID'
    validated = 'ALTER TABLE "delivery_runtarget" VALIDATE CONSTRAINT "c"'
    assert list(reading.problems(added)) == ["adds the rule c to delivery_runtarget"]
    assert list(reading.problems(validated)) == [
        "validates a rule of delivery_runtarget in the migration that adds it"
    ]
    reading.begin()  # in a migration of its own it is fine
    assert list(reading.problems(validated)) == []
