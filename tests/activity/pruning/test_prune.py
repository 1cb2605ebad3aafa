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
from api.hooks import dispatch as hooks
from config.long_tasks import one_pass
from notices import dispatch as notices
from tests.factories import (
    AccountDayFactory,
    AttemptFactory,
    DeliveryFactory,
    GroupSyncFactory,
    ImportFactory,
    ImportRowFactory,
    InboundFactory,
    NoticeFactory,
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


class TestKinds:
    """Each kind of data can be kept for a time of its own."""

    def test_a_kind_goes_before_the_days_of_all(self, settings: Settings) -> None:
        settings.KEEP_DAYS, settings.KEEP_DAYS_OF = 400, {"notifications": 30, "replies": 0}
        aged(NotificationFactory.create(), "created_at")
        aged(TestMessageFactory.create(), "asked_at")
        prune.prune_by_settings()
        assert not Notification.objects.exists()
        assert TestMessage.objects.exists()
        assert "replies" not in prune.borders_of_settings()

    def test_one_kind_alone_is_removed_without_days_for_all(self, settings: Settings) -> None:
        settings.KEEP_DAYS_OF = {"imports": 7}
        aged(ImportFactory.create(done=True), "created_at")
        aged(NotificationFactory.create(), "created_at")
        task()
        assert (Import.objects.count(), Notification.objects.count()) == (0, 1)

    def test_texts_of_replies_go_and_the_replies_stay(self, settings: Settings) -> None:
        settings.KEEP_DAYS_OF = {"reply-texts": 30}
        handled = timezone.now()
        old = [InboundFactory.create(text="I am ill", subject="Ill", handled_at=handled) for _ in range(3)]
        waiting = InboundFactory.create(text="STOP", handled_at=None)
        receipt = InboundFactory.create(
            kind=Inbound.Kind.RECEIPT, state="failed", text="gone", handled_at=handled
        )
        for row in (*old, waiting, receipt):
            aged(row, "created_at")
        new = InboundFactory.create(text="Hello", handled_at=handled)
        assert prune.would_remove(prune.borders_of_settings())["texts of replies"] == 3
        assert prune.prune(prune.borders_of_settings())["texts of replies"] == 3
        assert prune.prune(prune.borders_of_settings())["texts of replies"] == 0
        assert [row.text for row in Inbound.objects.order_by("pk")] == ["", "", "", "STOP", "gone", "Hello"]
        aged(new, "created_at")
        assert prune.prune(prune.borders_of_settings())["texts of replies"] == 1

    def test_keep_days_alone_empties_no_text_before_its_reply_goes(self) -> None:
        aged(InboundFactory.create(text="I am ill", handled_at=timezone.now()), "created_at")
        removed = prune.prune(prune.border(90))
        assert (removed["texts of replies"], removed["replies and receipts"]) == (0, 1)

    def test_the_command_removes_the_kinds_that_it_is_told(self) -> None:
        for make, column in ((NotificationFactory, "created_at"), (TestMessageFactory, "asked_at")):
            aged(make.create(), column)
        assert "1 notifications" in said(only=["notifications=7"])
        assert TestMessage.objects.exists()

    @pytest.mark.parametrize(
        ("only", "told"),
        [
            (["mails=7"], "The kinds are account-days, attempts"),
            (["replies=7"], "use 35 to 36500"),
            (["replies=x"], "write the days as a number"),
            (["replies=0"], "0 keeps a kind"),
            (["webhooks=7"], "a task of its own"),
        ],
    )
    def test_what_it_cannot_do_is_said(self, only: list[str], told: str) -> None:
        with pytest.raises(CommandError, match=told):
            call_command("prune", only=only)

    def test_targets_may_go_before_their_ledger_rows(self, owner: User) -> None:
        old_things(owner)
        assert prune.prune({"targets": prune.border(40)})["targets of runs"] == 1
        assert Attempt.objects.count() == 1

    def test_the_words_of_a_single_message_go_with_its_details(self, owner: User) -> None:
        run = RunFactory.create(reminder__owner=owner, kind="message", success=True, sent=1, finished_at=OLD)
        RunTargetFactory.create(run=run, sent=True)
        prune.prune({"targets": prune.border(40)})
        run.refresh_from_db()
        assert (run.name, run.parts) == ("Message to one recipient", [{"kind": "text", "text": "removed"}])

    def test_the_logs_of_webhooks_and_notices_have_days_of_their_own(self, settings: Settings) -> None:
        ended = timezone.now() - timedelta(days=10)
        DeliveryFactory.create(delivered=True, ended_at=ended)
        NoticeFactory.create(sent=True, ended_at=ended)
        assert (hooks.prune(), notices.forget()) == (0, 0)
        settings.KEEP_DAYS_OF = {"webhooks": 0, "notices": 0}
        assert (hooks.prune(), notices.forget()) == (0, 0)
        settings.KEEP_DAYS_OF = {"webhooks": 7, "notices": 7}
        assert (hooks.prune(), notices.forget()) == (1, 1)
