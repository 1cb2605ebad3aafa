"""The engine's statements: what they take, what they refuse, and that the counters follow."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from accounts.models import Account, Recipient, User
from activity.models import Attempt
from delivery import conf
from delivery.engine import claims, recording
from delivery.engine.claims import Claimed
from delivery.engine.recording import Begun, Counts, Intent, Landing, Ledgered
from delivery.engine.sql import run as run_query
from delivery.models import Run, RunTarget
from delivery.states import RunStatus, TargetStatus
from reminders.fire import fire
from tests.delivery.stage import add_up, counted
from tests.factories import AccountFactory, AttemptFactory, RecipientFactory, ReminderFactory

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("redis")]

FENCE = 7


@pytest.fixture
def account(owner: User) -> Account:
    return AccountFactory.create(owner=owner, fence=FENCE)


def run_of(account: Account, recipients: Any = 3, **values: Any) -> Run:
    reminder = ReminderFactory.create(
        owner=account.owner, accounts=[account], recipients=recipients, around_the_clock=True, **values
    )
    return fire(reminder)


def claim(run: Run, account: Account, *, fence: int = FENCE, most: int = 10) -> list[Claimed]:
    return claims.claim(run.pk, account.pk, fence=fence, most=most, now=datetime.now(UTC))


def begin(
    claimed: list[Claimed], *, fence: int = FENCE, wished_at: datetime | None = None
) -> dict[int, Begun]:
    now = datetime.now(UTC)
    intents = [
        Intent(target_id=each.target_id, part=each.parts_done, fence=fence, wished_at=wished_at or now)
        for each in claimed
    ]
    answers = run_query(
        recording.begin(intents, now=now, guard=timedelta(), tolerance=conf.clock_tolerance())
    )
    return {begun.target_id: begun for begun in answers if begun is not None}


def let_go(claimed: list[Claimed], *, fence: int = FENCE) -> list[int]:
    return claims.let_go([each.target_id for each in claimed], fence=fence, now=datetime.now(UTC))


def landing(
    run: Run, account: Account, target_id: int, status: TargetStatus, *, fence: int = FENCE, **values: Any
) -> Landing:
    usual: dict[str, Any] = {
        "whose": Ledgered(run_id=run.pk, owner_id=run.owner_id, account_id=account.pk, action=run.action),
        "fence": fence,
        "part": 0,
        "attempt": 1,
        "began_at": datetime.now(UTC),
        "took_ms": 5,
        "outcome": "sent" if status == "sent" else "try_again",
        "provider_id": "",
        "error": "",
        "parts_done": 1 if status == "sent" else 0,
        "not_before": None,
    }
    return Landing(target_id=target_id, status=status, **usual | values)


def record(*landings: Landing) -> dict[int, Counts]:
    return run_query(recording.record(landings, now=datetime.now(UTC)))


# Which run is next.


def next_run(account: Account) -> claims.NextRun | None:
    now = datetime.now(UTC)
    return claims.next_run(account.pk, now=now, sendable=now)


def test_the_next_run_is_by_priority_then_by_firing(account: Account) -> None:
    run_of(account)
    urgent = run_of(account, priority=2)
    run_of(account, priority=2)
    found = next_run(account)
    assert found is not None
    assert found.run_id == urgent.pk


def test_a_run_that_is_due_goes_before_a_more_urgent_one_that_is_not(account: Account) -> None:
    later, now = run_of(account, priority=9), run_of(account)
    later.targets.update(not_before=timezone.now() + timedelta(minutes=5))
    found = next_run(account)
    assert found is not None
    assert found.run_id == now.pk


def test_where_none_is_due_it_is_the_one_that_is_due_first(account: Account) -> None:
    late, early = run_of(account, priority=9), run_of(account)
    late.targets.update(not_before=timezone.now() + timedelta(minutes=5))
    early.targets.update(not_before=timezone.now() + timedelta(minutes=1))
    found = next_run(account)
    assert found is not None
    assert found.run_id == early.pk
    assert found.not_before == early.targets.all()[0].not_before


@pytest.mark.parametrize(
    "change",
    [
        {"status": RunStatus.QUEUED},
        {"status": RunStatus.PAUSED, "pause_reason": "operator"},
        {"closes_at": datetime(2020, 1, 1, tzinfo=UTC)},
    ],
    ids=["queued", "paused", "closed"],
)
def test_a_run_that_may_not_send_is_not_next(account: Account, change: dict[str, Any]) -> None:
    run = run_of(account)
    Run.objects.filter(pk=run.pk).update(**change)
    assert next_run(account) is None


# Claim.


def test_a_claim_takes_the_earliest_targets_and_counts_them(account: Account) -> None:
    run = run_of(account, 5)
    first = run.targets.order_by("pk")[4]
    RunTarget.objects.filter(pk=first.pk).update(not_before=timezone.now() - timedelta(hours=1))
    taken = claim(run, account, most=2)
    assert [each.target_id for each in taken] == [first.pk, run.targets.order_by("pk")[0].pk]
    assert counted(run) == {"pending": 3, "sending": 2}
    add_up(run)


def test_a_claim_brings_what_rendering_needs(account: Account) -> None:
    person = RecipientFactory.create(
        owner=account.owner, name="Ada", fields={"city": "Ipoh", "name": "Lovelace"}
    )
    [taken] = claim(run_of(account, [person]), account)
    assert taken.values == {"name": "Lovelace", "address": person.address, "city": "Ipoh"}


def test_a_target_that_is_not_due_is_not_claimed(account: Account) -> None:
    run = run_of(account)
    run.targets.update(not_before=timezone.now() + timedelta(minutes=1))
    assert claim(run, account) == []
    assert counted(run) == {"pending": 3}


def test_a_target_of_another_account_is_not_claimed(account: Account) -> None:
    other = AccountFactory.create(owner=account.owner, fence=FENCE)
    run = run_of(account)
    assert claim(run, other) == []


def test_a_run_that_is_paused_is_not_claimed_from(account: Account) -> None:
    run = run_of(account)
    Run.objects.filter(pk=run.pk).update(status="paused", pause_reason="operator")
    assert claim(run, account) == []


def test_an_account_that_is_stopped_claims_nothing(account: Account) -> None:
    run = run_of(account)
    Account.objects.update(status="flagged")
    assert claim(run, account) == []


# A pump that lost its lease.


@pytest.fixture
def stolen(account: Account) -> tuple[Run, list[Claimed]]:
    """Claimed by a pump that has since lost the account to another."""
    run = run_of(account)
    taken = claim(run, account)
    Account.objects.update(fence=FENCE + 1)
    return run, taken


def test_a_stale_pump_claims_nothing(account: Account) -> None:
    run = run_of(account)
    Account.objects.update(fence=FENCE + 1)
    assert claim(run, account) == []


def test_a_stale_pump_begins_nothing(stolen: tuple[Run, list[Claimed]]) -> None:
    _, taken = stolen
    assert begin(taken) == {}


def test_a_stale_pump_gives_back_nothing_that_is_not_its_own(stolen: tuple[Run, list[Claimed]]) -> None:
    run, taken = stolen
    run.targets.update(fence=FENCE + 1)
    assert let_go(taken) == []
    assert counted(run) == {"sending": 3}


def test_a_stale_pump_moves_no_target_but_its_messages_are_in_the_ledger(
    stolen: tuple[Run, list[Claimed]], account: Account
) -> None:
    run, taken = stolen
    run.targets.update(fence=FENCE + 1)
    record(landing(run, account, taken[0].target_id, TargetStatus.SENT))
    assert counted(run) == {"sending": 3}
    assert Attempt.objects.get().target_id == taken[0].target_id


# Begin: the last look.


def test_a_begun_target_says_when_and_which_attempt(account: Account) -> None:
    run = run_of(account)
    taken = claim(run, account)
    assert {begun.attempt for begun in begin(taken).values()} == {1}
    assert not run.targets.filter(begun_at=None).exists()


def test_what_has_begun_does_not_begin_again(account: Account) -> None:
    taken = claim(run_of(account), account)
    begin(taken)
    assert begin(taken) == {}


def test_an_intent_whose_answer_was_lost_is_the_same_attempt(account: Account) -> None:
    wished_at = datetime.now(UTC)
    taken = claim(run_of(account), account)
    begin(taken, wished_at=wished_at)
    again = begin(taken, wished_at=wished_at)
    assert {begun.attempt for begun in again.values()} == {1}
    assert len(again) == 3


@pytest.mark.parametrize(
    ("model", "change"),
    [
        (Run, {"status": "paused", "pause_reason": "operator"}),
        (Run, {"closes_at": datetime(2020, 1, 1, tzinfo=UTC)}),
        (Account, {"status": "paused"}),
        (Recipient, {"opted_out_at": datetime(2020, 1, 1, tzinfo=UTC)}),
        (Recipient, {"blocked_at": datetime(2020, 1, 1, tzinfo=UTC)}),
        (Recipient, {"archived_at": datetime(2020, 1, 1, tzinfo=UTC)}),
    ],
    ids=["paused", "closed", "account stopped", "opted out", "blocked", "archived"],
)
def test_the_last_look_refuses_what_changed_since_the_claim(
    account: Account, model: Any, change: dict[str, Any]
) -> None:
    taken = claim(run_of(account), account)
    model.objects.update(**change)
    assert begin(taken) == {}


# Give back.


def test_what_was_claimed_and_not_begun_goes_back(account: Account) -> None:
    run = run_of(account)
    taken = claim(run, account)
    begin(taken[:1])
    assert let_go(taken) == [run.pk]
    assert counted(run) == {"sending": 1, "pending": 2}
    add_up(run)


def test_who_must_not_be_written_to_meanwhile_is_skipped_with_the_reason(account: Account) -> None:
    run = run_of(account, 4)
    taken = claim(run, account)
    marks = {"opted_out_at": "opted out", "blocked_at": "blocked", "archived_at": "no longer reachable"}
    for each, mark in zip(taken, marks, strict=False):
        Recipient.objects.filter(address=each.address).update(**{mark: timezone.now()})
    let_go(taken)
    assert counted(run) == {"pending": 1, "skipped": 3}
    run.refresh_from_db()
    assert (run.left_out, run.expected) == (3, 1)
    assert set(run.targets.filter(status="skipped").values_list("error", flat=True)) == set(marks.values())
    add_up(run)


@pytest.mark.parametrize(
    ("part", "outcomes", "becomes", "error"),
    [
        (0, ["unknown"], "unconfirmed", "no answer within 20 s"),
        (0, ["unknown", "rate_limited"], "unconfirmed", "no answer within 20 s"),
        (0, ["rate_limited"], "skipped", "opted out"),
        (1, ["unknown"], "skipped", "opted out"),
    ],
    ids=["no answer", "refused after it", "only refused", "in doubt about the part before"],
)
def test_what_may_have_arrived_is_not_called_skipped_when_its_recipient_opts_out(
    account: Account, part: int, outcomes: list[str], becomes: str, error: str
) -> None:
    run = run_of(account)
    taken = claim(run, account)
    RunTarget.objects.filter(pk=taken[0].target_id).update(error="no answer within 20 s", parts_done=part)
    target = RunTarget.objects.get(pk=taken[0].target_id)
    for outcome in outcomes:
        AttemptFactory.create(target=target, run=run, account=account, outcome=outcome, part=0)
    Recipient.objects.filter(pk=target.recipient_id).update(opted_out_at=timezone.now())
    let_go(taken)
    target.refresh_from_db()
    assert (target.status, target.error, target.settled_at is None) == (becomes, error, False)
    assert counted(run) == {"pending": 2, becomes: 1}
    assert run.left_out == (becomes == "skipped")
    add_up(run)


# Record.


def test_a_record_moves_targets_ledger_and_counters_together(account: Account) -> None:
    run = run_of(account, 5)
    claimed = claim(run, account)
    assert len(begin(claimed)) == 5
    taken = [each.target_id for each in claimed]
    later = timezone.now() + timedelta(seconds=9)
    counts = record(
        landing(run, account, taken[0], TargetStatus.SENT, provider_id="abc"),
        landing(run, account, taken[1], TargetStatus.FAILED, error="no such number"),
        landing(run, account, taken[2], TargetStatus.UNCONFIRMED),
        landing(run, account, taken[3], TargetStatus.PENDING, not_before=later),
        landing(run, account, taken[4], TargetStatus.SENDING, outcome="sent", parts_done=1),
    )[run.pk]
    assert (counts.sent, counts.failed, counts.unconfirmed, counts.pending, counts.sending) == (1, 1, 1, 1, 1)
    assert not counts.canceled
    add_up(run)
    assert Attempt.objects.count() == 5
    sent, failed, _, again, going = run.targets.order_by("pk")
    assert (sent.provider_id, sent.settled_at is not None) == ("abc", True)
    assert failed.error == "no such number"
    assert (again.not_before, again.attempts, again.settled_at) == (later, 1, None)
    assert (going.parts_done, going.attempts, going.begun_at) == (1, 0, None)
    assert going.claimed_at is not None


def test_one_statement_records_for_runs_of_several_accounts(account: Account) -> None:
    other = AccountFactory.create(owner=account.owner, fence=FENCE + 5)
    first, second = run_of(account, 2), run_of(other, 3)
    landings = [
        landing(run, sender, each.target_id, status, fence=fence)
        for run, sender, fence, status in (
            (first, account, FENCE, TargetStatus.SENT),
            (second, other, FENCE + 5, TargetStatus.FAILED),
        )
        for each in claim(run, sender, fence=fence)
    ]
    counts = record(*landings)
    assert (counts[first.pk].sent, counts[second.pk].failed) == (2, 3)
    assert set(Attempt.objects.values_list("run_id", "account_id")) == {
        (first.pk, account.pk),
        (second.pk, other.pk),
    }
    add_up(first)
    add_up(second)


def test_what_is_recorded_again_after_a_lost_answer_is_in_the_ledger_once(account: Account) -> None:
    run = run_of(account, 2)
    landings = [landing(run, account, each.target_id, TargetStatus.SENT) for each in claim(run, account)]
    record(*landings)
    counts = run_query(recording.record_surely(landings, now=datetime.now(UTC)))
    assert counts[run.pk].sent == 2
    assert Attempt.objects.count() == 2
    add_up(run)
