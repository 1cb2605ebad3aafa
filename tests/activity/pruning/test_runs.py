"""A run that ended long ago loses its details, keeps its counts, and some runs are never touched."""

from datetime import datetime, timedelta

import pytest
from django.db import connection
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts.models import User
from activity.pages.runs import results
from activity.pruning import runs
from activity.pruning.prune import border
from delivery import lifecycle
from delivery.lifecycle import WrongStateError
from delivery.models import Run, RunTarget
from delivery.run_actions import ACTIONS
from reminders.models import FollowUp
from tests.factories import (
    FollowUpFactory,
    FollowUpStepFactory,
    InboundFactory,
    MediaHandleFactory,
    RunFactory,
    RunTargetFactory,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("redis")]

LONG_AGO = timezone.now() - timedelta(days=100)


@pytest.fixture(autouse=True)
def _short_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "SLICE", 2)


def ended(owner: User, *, at: datetime = LONG_AGO, **values: object) -> Run:
    """Return a run with one sent, one failed and one skipped target, which ended then."""
    counts = {"sent": 1, "failed": 1, "skipped": 1}
    run = RunFactory.create(reminder__owner=owner, partial=True, finished_at=at, **counts, **values)
    for trait in ("sent", "failed", "skipped"):
        RunTargetFactory.create(run=run, **{trait: True})
    Run.objects.filter(pk=run.pk).update(summary="1 of 3 recipients delivered, 1 failed.")
    return run


def pruned(days: int = 90) -> int:
    connection.cursor().execute("SET CONSTRAINTS ALL IMMEDIATE")
    return sum(runs.remove_details(border(days)))


def test_a_run_keeps_its_counts_and_says_that_its_details_were_removed(owner: User) -> None:
    run = ended(owner)
    MediaHandleFactory.create(run=run)
    assert pruned() == 3
    run.refresh_from_db()
    assert not run.targets.exists()
    assert not run.media_handles.exists()
    assert (run.total, run.sent, run.failed, run.skipped, run.details_left) == (3, 1, 1, 1, False)
    today = f"{timezone.now():%Y-%m-%d}"
    assert run.summary == (
        "1 of 3 recipients delivered, 1 failed. "
        f"The details of each recipient were removed on {today}; the counts stay."
    )
    assert pruned() == 0


def test_its_page_and_its_file_say_so(client: Client, owner: User) -> None:
    run = ended(owner)
    pruned()
    run.refresh_from_db()
    client.force_login(owner)
    page = client.get(reverse("runs:page", args=[run.pk])).content.decode()
    assert "The details of each recipient were removed" in page
    assert reverse("runs:retry", args=[run.pk]) not in page
    lines = list(results.result_lines(run))
    assert lines[1:] == [
        (f"Removed on {run.details_removed_at:%Y-%m-%d}: only the counts of this run are kept.",)
    ]


def test_its_failed_messages_are_not_sent_again(owner: User) -> None:
    run = ended(owner)
    pruned()
    run.refresh_from_db()
    assert not ACTIONS["retry"].suits(run)
    with pytest.raises(WrongStateError, match="its details were removed"):
        lifecycle.retry_failed(run)


def test_what_refers_to_its_targets_goes_or_lets_go(owner: User) -> None:
    run = ended(owner)
    target = run.targets.get(status="sent")
    reply = InboundFactory.create(target=target, run=run)
    old = timezone.now() - timedelta(days=95)
    followed = FollowUpFactory.create(target=target, sent=True, sent_as=None, ended_at=old)
    answered = RunFactory.create(success=True, second=True, first_target=target, finished_at=timezone.now())
    pruned()
    reply.refresh_from_db()
    answered.refresh_from_db()
    assert (reply.target_id, reply.run_id, answered.first_target_id) == (None, run.pk, None)
    assert not FollowUp.objects.filter(pk=followed.pk).exists()


def unfinished(owner: User) -> Run:
    run = RunFactory.create(reminder__owner=owner, paused=True, fired_at=LONG_AGO, sent=1)
    RunTargetFactory.create(run=run, sent=True)
    return run


def undecided(owner: User) -> Run:
    run = ended(owner, unconfirmed=1)
    RunTargetFactory.create(run=run, unconfirmed=True)
    return run


def waits_for_a_follow_up(owner: User) -> Run:
    run = ended(owner)
    FollowUpFactory.create(target=run.targets.get(status="sent"))
    return run


def may_get_a_follow_up(owner: User) -> Run:
    run = ended(owner)
    FollowUpStepFactory.create(reminder=run.reminder, after_hours=110 * 24)
    return run


def may_get_the_next_follow_up(owner: User) -> Run:
    run = ended(owner)
    FollowUpFactory.create(target=run.targets.get(status="sent"), sent=True)
    return run


def is_being_answered(owner: User) -> Run:
    run = ended(owner)
    RunFactory.create(second=True, first_target=run.targets.get(status="sent"))
    return run


@pytest.mark.parametrize(
    "needed",
    [
        unfinished,
        undecided,
        waits_for_a_follow_up,
        may_get_a_follow_up,
        may_get_the_next_follow_up,
        is_being_answered,
        lambda owner: ended(owner, at=timezone.now() - timedelta(days=89)),
    ],
    ids=lambda case: case.__name__.replace("<lambda>", "ended_lately"),
)
def test_what_is_under_way_or_still_needed_is_left_alone(owner: User, needed: object) -> None:
    run = needed(owner)  # type: ignore[operator]
    before = run.targets.count()
    pruned()
    run.refresh_from_db()
    assert run.targets.count() == before
    assert run.details_removed_at is None


def test_a_run_that_a_person_opens_between_looking_and_locking_stays(
    owner: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = ended(owner)
    found = runs.runs_over(border(90), known=[])
    lifecycle.retry_failed(run)
    monkeypatch.setattr(runs, "runs_over", lambda _, known: [] if known else found)
    assert pruned() == 0
    assert run.targets.count() == 3


def test_after_a_crash_the_next_pass_goes_on(owner: User) -> None:
    run = ended(owner)
    next(runs.remove_details(border(90)))
    run.refresh_from_db()
    assert (run.targets.count(), run.details_left) == (1, True)
    assert run.details_removed_at is not None
    assert pruned() == 1
    run.refresh_from_db()
    assert (run.targets.count(), run.details_left) == (0, False)
    assert run.summary.count("were removed") == 1


def test_the_newest_runs_are_never_read(owner: User) -> None:
    old, new = ended(owner), ended(owner, at=timezone.now())
    assert runs.runs_over(border(90), known=[]) == [old.pk]
    pruned()
    assert set(RunTarget.objects.values_list("run", flat=True)) == {new.pk}
