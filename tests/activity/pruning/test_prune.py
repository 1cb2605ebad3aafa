"""`manage.py prune` and KEEP_DAYS: what is old goes in slices, what is needed stays, and a dry run removes nothing."""

from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.contrib.sessions.models import Session
from django.core.management import CommandError, call_command
from django.db import models
from django.utils import timezone
from django_celery_beat.models import PeriodicTask
from pytest_django import Settings

from accounts.models import GroupSync, Import, ImportRow, TestMessage, User
from activity.models import AccountDay, Attempt, Inbound, Notification
from activity.pruning import prune, rows
from activity.tasks import prune as task
from config.long_tasks import one_pass
from tests.factories import (
    AccountDayFactory,
    AttemptFactory,
    GroupSyncFactory,
    ImportFactory,
    ImportRowFactory,
    InboundFactory,
    NotificationFactory,
    RunFactory,
    RunTargetFactory,
    TestMessageFactory,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("redis")]

OLD = timezone.now() - timedelta(days=100)


@pytest.fixture(autouse=True)
def _short_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "SLICE", 2)


def aged(row: models.Model, name: str) -> None:
    """Pretend that a row was written long ago; some of these times are set by the model."""
    type(row)._default_manager.filter(pk=row.pk).update(**{name: OLD})


MADE: dict[str, tuple[type[models.Model], Callable[..., Any], str]] = {
    "ledger rows": (Attempt, AttemptFactory.create, "at"),
    "replies and receipts": (Inbound, InboundFactory.create, "created_at"),
    "notifications": (Notification, NotificationFactory.create, "created_at"),
    "days of accounts": (AccountDay, AccountDayFactory.create, "day"),
    "tests": (TestMessage, TestMessageFactory.create, "asked_at"),
    "group readings": (GroupSync, lambda: GroupSyncFactory.create(finished=True), "started_at"),
}


@pytest.mark.parametrize("kind", MADE)
def test_old_rows_go_and_new_ones_stay(kind: str) -> None:
    model, make, written = MADE[kind]
    old, new = [make() for _ in range(5)], [make() for _ in range(3)]
    for row in old:
        aged(row, written)
    assert prune.prune(prune.border(90))[kind] == 5
    assert set(model._default_manager.values_list("pk", flat=True)) == {row.pk for row in new}


def test_an_old_row_between_new_ones_is_found() -> None:
    made = [NotificationFactory.create() for _ in range(4)]
    aged(made[0], "created_at")
    aged(made[3], "created_at")
    assert prune.prune(prune.border(90))["notifications"] == 2
    assert set(Notification.objects.all()) == set(made[1:3])


def test_a_change_of_consent_decides_over_earlier_ones_and_stays() -> None:
    aged(InboundFactory.create(kind=Inbound.Kind.CONSENT, state="out"), "created_at")
    assert prune.prune(prune.border(90)).total() == 0


def test_replies_are_fetched_while_old_rows_are_removed(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.KEEP_DAYS = 90
    free: list[bool] = []

    def removing(*_: object, **__: object) -> Counter[str]:
        task()  # a pass of the next ten minutes: it ends at once
        with one_pass("poll") as polls, one_pass("probe") as probes:
            free.extend([polls, probes])
        return Counter()

    monkeypatch.setattr(prune, "prune", removing)
    task()
    assert free == [True, True]


def test_an_import_goes_with_its_rows_unless_it_is_at_work() -> None:
    done, working = ImportFactory.create(done=True), ImportFactory.create(status=Import.Status.SAVING)
    ImportRowFactory.create_batch(3, job=done)
    for job in (done, working):
        aged(job, "created_at")
    assert prune.prune(prune.border(90))["imports and their rows"] == 4
    assert Import.objects.get() == working
    assert not ImportRow.objects.exists()


def test_a_reading_of_groups_that_is_under_way_stays() -> None:
    aged(GroupSyncFactory.create(), "started_at")
    assert prune.prune(prune.border(90)).total() == 0


def test_logins_that_are_over_go() -> None:
    now = timezone.now()
    for key, ends in (("a", -1), ("b", 1)):
        Session.objects.create(session_key=key, session_data="", expire_date=now + timedelta(days=ends))
    assert prune.prune(prune.border(90))["ended logins"] == 1
    assert Session.objects.get().session_key == "b"


def old_things(owner: User) -> None:
    run = RunFactory.create(reminder__owner=owner, success=True, sent=1, finished_at=OLD)
    AttemptFactory.create(target=RunTargetFactory.create(run=run, sent=True), at=OLD)
    aged(NotificationFactory.create(), "created_at")


def said(**options: object) -> str:
    out = StringIO()
    call_command("prune", stdout=out, **options)
    return out.getvalue()


def test_a_dry_run_counts_what_the_command_then_removes(owner: User) -> None:
    old_things(owner)
    dry = said(days=90, dry_run=True)
    assert Attempt.objects.count() == 1
    assert "3 rows from before" in dry
    assert (
        dry.replace("would be removed", "were removed").splitlines()[:-1] == said(days=90).splitlines()[:-1]
    )
    assert not Attempt.objects.exists()
    assert "\n0 rows" in f"\n{said(days=90)}"


def test_without_days_the_command_removes_nothing_and_says_so() -> None:
    with pytest.raises(CommandError, match="set KEEP_DAYS, or name the days"):
        call_command("prune")


def test_the_days_that_limits_count_are_kept() -> None:
    with pytest.raises(CommandError, match="keep at least so many"):
        call_command("prune", days=34)


def test_by_default_everything_is_kept(owner: User) -> None:
    old_things(owner)
    task()
    assert Attempt.objects.count() == 1


def test_with_keep_days_beat_prunes(owner: User, settings: Settings) -> None:
    settings.KEEP_DAYS = 90
    old_things(owner)
    task()
    assert not Attempt.objects.exists()
    assert PeriodicTask.objects.filter(task="activity.prune").exists()


def test_a_pass_ends_when_its_time_is_over_and_the_next_one_goes_on(owner: User) -> None:
    for _ in range(5):
        aged(NotificationFactory.create(), "created_at")
    assert prune.prune(prune.border(90), seconds=-1)["notifications"] == 2
    assert prune.prune(prune.border(90))["notifications"] == 3
