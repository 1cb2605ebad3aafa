"""Runs and targets that the database itself refuses."""

from typing import Any

import pytest
from django.db.models import Model
from django.utils import timezone

from delivery.states import SETTLED_RUN, RunStatus
from tests.factories import (
    MediaHandleFactory,
    ReminderFactory,
    RunAccountFactory,
    RunFactory,
    RunTargetFactory,
    TargetContentFactory,
)
from tests.refusals import (
    Refusal,
    as_parameters,
    changed,
    check_below_zero,
    declared,
    doubled,
    numbers_from_zero,
)
from tests.reminders.test_constraints import BAD_WINDOWS

pytestmark = pytest.mark.django_db

NOON = timezone.now().replace(hour=12, minute=0, second=0, microsecond=0)
COUNTS = ("total", "pending", "sending", "sent", "failed", "skipped", "unconfirmed")
UNDER_WAY = {"pending": 7, "sending": 3}
CLAIMED = {"claimed": True}
BEGUN = {"begun": True}
RETURNED = {"returned": True}

REFUSALS = [
    *(
        changed(sentence, "run_window", RunFactory, window_start_hour=start, window_end_hour=end)
        for sentence, (start, end) in BAD_WINDOWS.items()
    ),
    changed("a run without a send day", "run_send_days", RunFactory, send_days=0),
    changed("a run with an eighth day", "run_send_days", RunFactory, send_days=128),
    changed("half a drip", "run_drip_gap", RunFactory, drip_gap_min=300),
    changed("a drip with its gaps swapped", "run_drip_gap", RunFactory, drip_gap_min=2, drip_gap_max=1),
    changed("a run with an unknown status", "run_status_known", RunFactory, status="stuck"),
    changed("a run of an unknown action", "run_action_known", RunFactory, action="wave"),
    changed("a run of an unknown kind", "run_kind_known", RunFactory, kind="joke"),
    doubled(
        "two runs for one due moment",
        "run_once_per_due_moment",
        RunFactory,
        "reminder",
        "due_at",
        due_at=NOON,
    ),
    doubled(
        "two second messages for one first",
        "delivery_run_first_target_id_key",
        RunFactory,
        "first_target",
        second=True,
    ),
    changed(
        "a reminder's own run with a first message",
        "run_second_alone_has_a_first",
        RunFactory,
        {"second": True},
        kind="reminder",
    ),
    doubled("two runs with one key", "delivery_run_key_key", RunFactory, "key"),
    # Counts
    *(
        changed(f"a run with one too many {count}", "run_counts_add_up", RunFactory, UNDER_WAY, **{count: 11})
        for count in COUNTS
    ),
    *(
        changed(
            f"a run that is {status} with {left} left",
            "run_settled_leaves_nothing",
            RunFactory,
            {"status": status},
            **{left: 1, "total": 1},
        )
        for status in sorted(SETTLED_RUN - {RunStatus.SUCCESS})
        for left in ("pending", "sending")
    ),
    *(
        changed(
            f"a success with one {unsent}",
            "run_success_is_all_sent",
            RunFactory,
            {"sent": 9, unsent: 1},
            status="success",
        )
        for unsent in ("failed", "skipped", "unconfirmed")
    ),
    changed(
        "a success with one left out and one failed",
        "run_success_is_all_sent",
        RunFactory,
        {"sent": 8, "skipped": 1, "left_out": 1, "failed": 1},
        status="success",
    ),
    changed(
        "a run with more left out than skipped",
        "run_left_out_are_skipped",
        RunFactory,
        {"skipped": 2},
        left_out=3,
    ),
    # Pauses
    changed("a run paused for no reason", "run_paused_for_a_reason", RunFactory, status="paused"),
    changed(
        "a run paused for an unknown reason",
        "run_paused_for_a_reason",
        RunFactory,
        {"paused": True},
        pause_reason="tired",
    ),
    changed(
        "a running run with a reason to pause", "run_paused_for_a_reason", RunFactory, pause_reason="operator"
    ),
    changed(
        "a paused run that runs on with its reason",
        "run_paused_for_a_reason",
        RunFactory,
        {"paused": True},
        status="running",
    ),
    # Shares, targets, media
    doubled("an account twice in one run", "run_account_once", RunAccountFactory, "run", "account"),
    doubled(
        "a recipient twice in one run", "target_once_per_run_and_item", RunTargetFactory, "run", "recipient"
    ),
    changed("an item that says nothing", "target_content_is_not_empty", TargetContentFactory, parts=[]),
    changed("a target with an unknown status", "target_status_known", RunTargetFactory, status="gone"),
    changed(
        "a target being sent without a fencing number",
        "target_begun_only_while_sending",
        RunTargetFactory,
        CLAIMED,
        fence=None,
    ),
    changed(
        "a target being sent that nobody claimed",
        "target_begun_only_while_sending",
        RunTargetFactory,
        CLAIMED,
        claimed_at=None,
    ),
    *(
        changed(
            f"a target begun and {status}",
            "target_begun_only_while_sending",
            RunTargetFactory,
            BEGUN,
            status=status,
        )
        for status in ("pending", "sent", "failed", "skipped", "unconfirmed")
    ),
    changed("more returned than sent", "run_returned_were_sent", RunFactory, {"sent": 1}, returned=2),
    changed("a return of no kind", "target_returned_of_a_kind", RunTargetFactory, RETURNED, return_kind=""),
    changed("a kind of no return", "target_returned_of_a_kind", RunTargetFactory, RETURNED, returned_at=None),
    doubled(
        "one file uploaded twice for one run and account",
        "media_uploaded_once",
        MediaHandleFactory,
        "run",
        "account",
        "sha256",
    ),
]


@pytest.mark.parametrize("refusal", as_parameters(REFUSALS))
def test_the_database_refuses(refusal: Refusal) -> None:
    refusal.check()


def test_every_constraint_is_tried() -> None:
    assert declared("delivery") - {refusal.constraint for refusal in REFUSALS} == set()


@pytest.mark.parametrize(("model", "column"), numbers_from_zero("delivery"))
def test_the_database_refuses_a_number_below_zero(model: type[Model], column: str) -> None:
    check_below_zero(model, column)


@pytest.mark.parametrize(
    "values",
    [
        pytest.param({"window_start_hour": 0, "window_end_hour": 24}, id="the whole day"),
        pytest.param({"success": True, "sent": 10}, id="a success of ten"),
        pytest.param({"success": True}, id="a success of none"),
        pytest.param(
            {"success": True, "sent": 9, "skipped": 1, "left_out": 1}, id="a success of nine of nine"
        ),
        pytest.param({"partial": True}, id="a run that is sent in part"),
        pytest.param({"paused": True, "sent": 3, "pending": 7}, id="a paused run"),
        pytest.param({"missed": True}, id="a moment that was missed"),
    ],
)
def test_the_database_takes_what_is_just_allowed(values: dict[str, Any]) -> None:
    assert RunFactory.create(**values).pk


def test_a_reminder_may_be_fired_by_hand_again_and_again() -> None:
    reminder = ReminderFactory.create()
    RunFactory.create(reminder=reminder)
    RunFactory.create(reminder=reminder)
