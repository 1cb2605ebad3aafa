"""A run's state in a sentence."""

from typing import Any

import pytest

from accounts.models import User
from delivery.models import Run
from delivery.sentences import run_summary
from delivery.states import PauseReason
from tests.factories import (
    AccountFactory,
    AttemptFactory,
    LimitFactory,
    RecipientFactory,
    RunAccountFactory,
    RunFactory,
    RunTargetFactory,
)

pytestmark = pytest.mark.django_db

RATE = "The account's limits were too low"
CAP = "The account's daily limit was reached"
ERRORS = "Errors slowed it down"
MEDIA = "Large files took most of the time"


def run_of(owner: User, **values: Any) -> Run:
    return RunFactory.create(reminder__owner=owner, **values)


@pytest.mark.parametrize(
    ("counts", "sentence"),
    [
        ({"sent": 3}, "3 of 3 groups delivered."),
        ({"sent": 1}, "1 of 1 group delivered."),
        ({"sent": 1, "failed": 2}, "1 of 3 groups delivered, 2 failed."),
        ({"sent": 3, "action": "email"}, "3 of 3 recipients delivered."),
        # Who was never to get it is not among those "of" means; who was given up is.
        ({"sent": 3, "skipped": 2, "left_out": 2}, "3 of 3 groups delivered, 2 left out."),
        ({"sent": 3, "skipped": 7, "left_out": 2}, "3 of 8 groups delivered, 5 skipped, 2 left out."),
        ({"skipped": 2, "left_out": 2}, "No recipient could get it, 2 left out."),
        (
            {"sent": 1, "failed": 2, "skipped": 3, "unconfirmed": 4},
            "1 of 10 groups delivered, 2 failed, 3 skipped, 4 unconfirmed.",
        ),
    ],
)
def test_an_end_names_what_was_not_delivered(owner: User, counts: dict[str, int], sentence: str) -> None:
    assert run_summary.finished(run_of(owner, **counts)) == sentence


@pytest.mark.parametrize(
    ("kinds", "noun"),
    [
        (["group", "group"], "groups"),
        (["person", "person"], "people"),
        (["group", "person"], "recipients"),
    ],
)
def test_groups_are_called_groups_and_people_people(owner: User, kinds: list[str], noun: str) -> None:
    run = run_of(owner, sent=2)
    for kind in kinds:
        recipient = RecipientFactory.create(owner=owner, **{kind: True} if kind == "group" else {})
        RunTargetFactory.create(run=run, recipient=recipient, sent=True)
    assert run_summary.finished(run) == f"2 of 2 {noun} delivered."


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        (PauseReason.ERROR_RATE, "3 of 5 attempts failed"),
        (PauseReason.OPERATOR, "Paused by an operator."),
        (PauseReason.ACCOUNT_OFFLINE, "when the account can send again"),
    ],
)
def test_a_pause_says_why_and_how_far_it_got(owner: User, reason: PauseReason, words: str) -> None:
    run = run_of(owner, paused=True, pause_reason=reason, sent=2, failed=3, pending=4, sending=1)
    assert words in run_summary.paused(run)
    assert run_summary.paused(run).endswith("2 of 10 groups delivered, 5 still pending.")


@pytest.mark.parametrize(
    ("counts", "words"),
    [
        ({"sent": 10, "returned": 4}, "Too many errors in 10 attempts: 4 came back later. Look"),
        ({"sent": 9, "unconfirmed": 1}, "Too many errors in 10 attempts: 1 is unconfirmed. Look"),
        (
            {"sent": 6, "failed": 2, "returned": 3, "unconfirmed": 2},
            "Too many errors: 2 of 10 attempts failed, 3 came back later, 2 are unconfirmed. Look",
        ),
    ],
)
def test_a_pause_for_errors_names_each_kind_that_there_is(
    owner: User, counts: dict[str, int], words: str
) -> None:
    run = run_of(owner, paused=True, pause_reason=PauseReason.ERROR_RATE, **counts)
    assert run_summary.paused(run).startswith(words)


@pytest.mark.parametrize(
    ("counts", "waiting_for", "per_day", "took_ms", "kind", "cause"),
    [
        ({"sent": 20}, "gap", None, 100, "text", RATE),
        ({"sent": 20}, "gap", 2, 100, "text", RATE),
        ({"sent": 20}, "not_before", 1, 100, "text", CAP),
        ({"sent": 18, "failed": 2}, "slowed", 1, 9000, "media", CAP),
        ({"sent": 20}, "slowed", None, 100, "text", ERRORS),
        ({"sent": 18, "failed": 2}, "gap", None, 100, "text", ERRORS),
        ({"sent": 20}, "gap", None, 9000, "media", MEDIA),
        ({"sent": 20}, "gap", None, 9000, "text", RATE),
        ({"sent": 19, "failed": 1}, "gap", None, 100, "text", RATE),
    ],
)
def test_what_held_a_run_back(
    owner: User,
    counts: dict[str, int],
    waiting_for: str,
    per_day: int | None,
    took_ms: int,
    kind: str,
    cause: str,
) -> None:
    run = run_of(owner, parts=[{"kind": kind}], **counts)
    account = AccountFactory.create(owner=owner, waiting_for=waiting_for)
    LimitFactory.create(account=account, per_day=per_day)
    RunAccountFactory.create(run=run, account=account)
    AttemptFactory.create(target=RunTargetFactory.create(run=run, account=account), took_ms=took_ms)
    assert run_summary.held_back(run).startswith(cause)


def test_an_account_that_stopped_is_named_with_its_reason(owner: User) -> None:
    account = AccountFactory.create(owner=owner, name="Office phone")
    told = run_summary.account_stopped(run_of(owner, sent=1, pending=2), account, "logged out")
    assert told.startswith(
        "Office phone stopped sending: logged out. 1 of 3 groups delivered, 2 still pending."
    )
