"""After a restore: what may have been sent in the gap is decided by a person, and no more than that."""

from datetime import UTC, datetime, timedelta
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from accounts.models import Account, Recipient
from activity.models import Attempt
from delivery import lifecycle
from delivery.engine import pump
from delivery.models import Run
from delivery.pacing import Limits
from delivery.recovery import stop_sending
from delivery.recovery.after_restore import Gap, find, most_sent
from delivery.states import PauseReason, RunStatus
from tests.delivery.stage import Stage, add_up, counted, serve
from tests.factories import LimitFactory

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("redis")]


@pytest.mark.parametrize(
    ("limits", "seconds", "expected"),
    [
        (Limits(), 600, None),
        (Limits(per_minute=40), 2, 40),
        (Limits(per_minute=40), 60, 80),
        (Limits(per_minute=40), 600, 440),
        (Limits(per_minute=40, per_hour=100), 600, 100),
        (Limits(per_minute=40, per_day=20), 60, 40),
        (Limits(per_minute=40, gap_min=30, gap_max=60), 600, 21),
        (Limits(gap_min=180, gap_max=300, per_hour=10), 60, 1),
    ],
)
def test_no_more_can_have_been_sent_than_the_limits_allow(
    limits: Limits, seconds: int, expected: int | None
) -> None:
    assert most_sent(limits, timedelta(seconds=seconds)) == expected


def said(*arguments: str) -> str:
    out = StringIO()
    call_command("after_restore", *arguments, stdout=out)
    return out.getvalue()


def moments(ago: float, length: float = 60) -> list[str]:
    since = datetime.now(UTC) - timedelta(seconds=ago)
    return ["--since", since.isoformat(), "--until", (since + timedelta(seconds=length)).isoformat()]


def keyless(stage: Stage, *, per_minute: int) -> Account:
    account = stage.account(idempotent=False)
    account.limits.all().delete()
    LimitFactory.create(account=account, action="message", per_minute=per_minute)
    return account


def fired(stage: Stage, account: Account, *, to: int, ago: float) -> Run:
    """A run that was fired so many seconds ago."""
    run = stage.fire(account, to=to)
    then = timezone.now() - timedelta(seconds=ago)
    Run.objects.filter(pk=run.pk).update(fired_at=then)
    run.targets.update(not_before=then)
    return run


def test_the_first_ones_become_unconfirmed_and_count_and_the_others_go_out(stage: Stage) -> None:
    account = keyless(stage, per_minute=2)
    run = fired(stage, account, to=6, ago=600)
    stop_sending.stop(None)
    asked = moments(ago=300)
    assert "4 that may have been sent in the gap would become unconfirmed: --apply does it." in said(*asked)
    run.refresh_from_db()
    assert run.pending == 6

    assert "4 that may have been sent in the gap are unconfirmed now." in said(*asked, "--apply")
    run.refresh_from_db()
    assert counted(run) == {"unconfirmed": 4, "pending": 2}
    add_up(run)
    rows = Attempt.objects.filter(run=run)
    assert set(rows.values_list("outcome", "error")) == {
        ("unknown", "may have been sent before the database was restored")
    }
    assert rows.count() == 4

    stop_sending.start(None)
    account.limits.update(per_minute=3000)
    run = serve(run, account)
    assert (run.status, counted(run)) == (RunStatus.PARTIAL, {"sent": 2, "unconfirmed": 4})
    assert len(stage.delivered(account)) == 2


def test_new_people_who_may_have_been_written_to_count_against_their_limit(stage: Stage) -> None:
    account = keyless(stage, per_minute=2)
    account.limits.update(new_per_day=5)
    run = fired(stage, account, to=6, ago=600)
    stop_sending.stop(None)
    said(*moments(ago=300), "--apply")
    stop_sending.start(None)
    assert list(Attempt.objects.filter(run=run).values_list("new_person", flat=True)) == [2] * 4
    account.limits.update(per_minute=3000)
    pump.pump(account.pk)
    assert counted(run) == {"sent": 1, "unconfirmed": 4, "pending": 1}


def test_a_service_that_knows_the_keys_needs_nobody_unless_the_run_was_fired_anew(stage: Stage) -> None:
    account = stage.account(idempotent=True)
    fired(stage, account, to=2, ago=600)
    anew = stage.fire(account, to=3)  # now, for a moment in the gap
    Run.objects.filter(pk=anew.pk).update(due_at=timezone.now() - timedelta(seconds=280))
    now = timezone.now()
    gap = Gap(since=now - timedelta(seconds=300), until=now - timedelta(seconds=200))
    assert [(found.run.pk, len(found.targets)) for found in find(gap)] == [(anew.pk, 3)]


def test_what_was_fired_or_planned_after_the_gap_is_left_alone(stage: Stage) -> None:
    account = keyless(stage, per_minute=100)
    fired(stage, account, to=2, ago=10)
    planned = fired(stage, account, to=2, ago=600)
    planned.targets.update(not_before=timezone.now() + timedelta(hours=1))
    stop_sending.stop(None)
    assert said(*moments(ago=300)) == "Nothing is in doubt.\n"


def in_doubt(run: Run, *, ago: float = 300, length: float = 60) -> list[int]:
    """The places of the targets that may have been sent in a gap so long ago, in the order of the run."""
    since = timezone.now() - timedelta(seconds=ago)
    gap = Gap(since=since, until=since + timedelta(seconds=length))
    order = list(run.targets.order_by("not_before", "pk").values_list("pk", flat=True))
    return sorted(order.index(pk) for found in find(gap) if found.run == run for pk in found.targets)


def test_each_run_may_have_been_the_one_that_was_served(stage: Stage) -> None:
    """The first by rank may have been paused or out of its window in the gap, and only now come first."""
    account = keyless(stage, per_minute=1)
    first = fired(stage, account, to=5, ago=700)
    lifecycle.pause(first, reason=PauseReason.OPERATOR)
    Run.objects.filter(pk=first.pk).update(priority=9)
    second = fired(stage, account, to=5, ago=600)
    assert (in_doubt(first), in_doubt(second)) == ([0, 1], [0, 1])


def test_who_had_opted_out_before_takes_nobodys_place(stage: Stage) -> None:
    account = keyless(stage, per_minute=1)
    run = fired(stage, account, to=5, ago=600)
    for target in run.targets.order_by("pk")[:2]:
        Recipient.objects.filter(pk=target.recipient_id).update(opted_out_at=timezone.now())
    assert in_doubt(run) == [2, 3]


def test_an_account_that_serves_first_what_is_on_time_may_have_sent_all_of_that(stage: Stage) -> None:
    account = keyless(stage, per_minute=1)
    Account.objects.filter(pk=account.pk).update(profile="slow_sender")
    run = fired(stage, account, to=8, ago=6000)
    on_time, later = run.targets.order_by("pk")[5:7], run.targets.order_by("pk")[7]
    for target in on_time:
        run.targets.filter(pk=target.pk).update(not_before=timezone.now() - timedelta(seconds=290))
    run.targets.filter(pk=later.pk).update(not_before=timezone.now())
    found = in_doubt(run)
    assert found[-2:] == [5, 6]
    assert 1 <= len(found[:-2]) < 5


def test_a_run_of_which_all_is_in_doubt_is_settled(stage: Stage) -> None:
    account = keyless(stage, per_minute=100)
    run = fired(stage, account, to=3, ago=600)
    stop_sending.stop(None)
    said(*moments(ago=300), "--apply")
    run.refresh_from_db()
    assert (run.status, counted(run)) == (RunStatus.PARTIAL, {"unconfirmed": 3})


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["--since", "2026-11-18 10:00"], 1, "Sending is not stopped"),
        (["--since", "soon"], 2, "'soon' is not a time"),
        (["--since", "2026-13-45 10:00"], 2, "is not a time"),
        (["--since", "2026-11-18 10:00", "--until", "2026-11-18 09:00"], 2, "must end after it began"),
    ],
)
def test_it_says_what_is_wrong(arguments: list[str], code: int, sentence: str) -> None:
    with pytest.raises(CommandError, match=sentence) as error:
        said(*arguments)
    assert error.value.returncode == code
