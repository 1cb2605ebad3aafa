"""Work that nobody does: a share without a worker, a wake-up that is past, a media folder that is another."""

import os
import threading
import time
from datetime import timedelta
from io import StringIO
from pathlib import Path

import pytest
from django.conf import settings as django_settings
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone
from pytest_django import Settings
from redis import Redis
from structlog.testing import capture_logs

from accounts.models import Account, User
from accounts.share import Share
from activity import heartbeats, media_marker
from activity.health import readiness, workers
from activity.health.work_checks import Work, judge, unserved
from activity.health.workers import Report
from activity.media_marker import Marker
from config.embedded.process import until
from delivery.engine import tick, wakeups
from delivery.recovery import stop_sending
from delivery.sentences.account_state import whys
from tests.factories import AccountFactory, RunAccountFactory

SEEN = Marker(text="m", settled=True)


def report(name: str, share: str = "1/1", media: str = "m") -> Report:
    return Report(name=name, share=Share.parse(share), media=media)


@pytest.mark.parametrize(
    ("shares", "expected"),
    [
        (["1/1"], []),
        (["1/2", "2/2"], []),
        (["1/2"], [1, 3]),
        (["1/3", "3/3"], [1, 4]),
        (["1/2", "1/3"], [1]),
        ([], [1, 2, 3, 4]),
    ],
)
def test_accounts_that_no_worker_serves_are_found(shares: list[str], expected: list[int]) -> None:
    assert unserved([1, 2, 3, 4], [report(share, share) for share in shares]) == expected


def failing(work: Work, *reports: Report, marker: Marker = SEEN) -> dict[str, str]:
    return {check.name: check.detail for check in judge(work, reports, marker=marker) if not check.ok}


def test_nothing_is_wrong_where_all_work_has_somebody() -> None:
    assert failing(Work(accounts=[1, 2]), report("one")) == {}


def test_a_share_without_a_worker_is_named_with_its_accounts() -> None:
    assert failing(Work(accounts=[1, 2, 3]), report("one", "1/2")) == {
        "shares": "no worker serves 2 accounts with work (1, 3): workers have the shares 1/2"
    }


def test_without_any_worker_only_that_is_said() -> None:
    assert failing(Work(accounts=[1])) == {}


def test_overdue_wake_ups_are_counted() -> None:
    found = failing(Work(accounts=[1], overdue=1, oldest=95), report("one"))
    assert found == {"wake_ups": "1 account should have been looked at, the first 95 s ago"}


def test_accounts_whose_pumps_nobody_takes_are_counted() -> None:
    """The tick still comes, so their wake-ups move on and are never past."""
    found = failing(Work(accounts=[1], unanswered=2), report("one"))
    assert found == {"wake_ups": "no worker takes up 2 accounts with work"}


@pytest.mark.django_db(transaction=True)
def test_an_account_that_is_woken_again_and_again_and_never_served_is_told_of_everywhere(
    redis: Redis, client: Client, staff: User
) -> None:
    account = RunAccountFactory.create().account

    def becomes_due() -> None:
        Account.objects.filter(pk=account.pk).update(wake_at=timezone.now() - timedelta(seconds=1))
        tick.wake_due_accounts()
        account.refresh_from_db()

    for _ in range(wakeups.UNANSWERED):
        becomes_due()
        assert readiness.probe().work.unanswered == 0
    becomes_due()
    becomes_due()
    assert account.wake_at is not None
    assert account.wake_at > timezone.now()
    assert redis.llen(f"paceline:queue:account-{account.pk}") == wakeups.UNANSWERED, "more would not help"
    assert readiness.probe().work.unanswered == 1
    client.force_login(staff)
    assert not client.get("/readyz").json()["checks"]["wake_ups"]["ok"]
    assert "paceline_unanswered_accounts 1.0" in client.get("/metrics").content.decode()
    sentence = whys([account], now=timezone.now())[account.pk].sentence
    assert sentence == "No worker serves this account. Check that the workers run."
    assert wakeups.take_lease(account.pk)
    account.refresh_from_db()
    assert account.waiting_for == "", "somebody came"


def test_a_worker_that_sees_another_folder_is_counted_once_the_marker_has_been_seen() -> None:
    reports = [report("one"), report("two", media="other"), report("three", media="")]
    assert failing(Work(), *reports) == {
        "media": "2 of 3 workers do not see the media that this process sees"
    }
    assert failing(Work(), *reports, marker=Marker(text="m")) == {}


def test_media_that_this_process_cannot_use_are_told_with_the_place() -> None:
    [*_, media] = judge(Work(), [], marker=Marker(problem="Permission denied"))
    assert (media.ok, media.detail) == (False, "this process cannot use the place of the media")
    assert media.cause == f"folder {django_settings.MEDIA_ROOT}: Permission denied"


def test_messages_outside_the_months_of_the_ledger_are_told() -> None:
    [*_, ledger, _media] = judge(Work(outside=True), [], marker=Marker())
    assert (ledger.name, ledger.ok, ledger.needed) == ("ledger", False, False)
    [*_, ledger, _media] = judge(Work(), [], marker=Marker())
    assert ledger.ok


def waiting() -> int:
    """The threads that wait for a disk."""
    return [thread.name for thread in threading.enumerate()].count("within")


class TestTheMarker:
    @pytest.fixture(autouse=True)
    def folder(self, settings: Settings, tmp_path: Path) -> Path:
        settings.MEDIA_ROOT = tmp_path / "media"
        return tmp_path / "media"

    def test_it_is_written_once_and_read_by_others(self) -> None:
        assert media_marker.look() == media_marker.NONE
        first = media_marker.look(write=True)
        assert first.text
        assert media_marker.look(write=True) == media_marker.look() == first

    def test_a_folder_that_cannot_be_written_has_none(self, settings: Settings, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        settings.MEDIA_ROOT = tmp_path / "file" / "media"
        assert "Not a directory" in media_marker.look(write=True).problem

    def test_it_is_believed_after_every_worker_has_looked(self, folder: Path) -> None:
        assert media_marker.look(write=True).settled is False
        old = time.time() - 60
        os.utime(folder / media_marker.NAME, (old, old))
        assert media_marker.look().settled is True

    def test_a_disk_that_hangs_holds_one_thread_and_nobody_else(self, folder: Path) -> None:
        before = waiting()
        folder.mkdir()
        os.mkfifo(folder / media_marker.NAME)  # to open it waits for somebody who writes
        assert media_marker.look().problem == "no answer within 1 s"
        assert media_marker.look().problem.startswith("no answer for")
        assert waiting() == before + 1
        (folder / media_marker.NAME).write_text("back")
        assert until(lambda: waiting() <= before, seconds=20)
        (folder / media_marker.NAME).unlink()
        assert media_marker.look(write=True).text


class TestTheStart:
    @pytest.fixture(autouse=True)
    def folder(self, settings: Settings, tmp_path: Path, redis: Redis) -> None:
        settings.MEDIA_ROOT = tmp_path / "web"

    def test_a_worker_that_sees_the_same_files_starts_in_silence(self) -> None:
        assert heartbeats.compare_media(), "no web server has said anything yet"
        heartbeats.announce_media()
        with capture_logs() as lines:
            assert heartbeats.compare_media()
        assert lines == []

    def test_a_worker_that_sees_others_says_so_with_what_to_do(
        self, settings: Settings, tmp_path: Path
    ) -> None:
        heartbeats.announce_media()
        settings.MEDIA_ROOT = tmp_path / "worker"
        with capture_logs() as lines:
            assert not heartbeats.compare_media()
        assert (lines[0]["event"], lines[0]["place"]) == ("media_differ", f"folder {tmp_path / 'worker'}")
        assert "Give all of them the same MEDIA_ROOT" in lines[0]["hint"]

    def test_a_web_server_that_cannot_write_says_so(self, settings: Settings, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        settings.MEDIA_ROOT = tmp_path / "file" / "media"
        with capture_logs() as lines:
            heartbeats.announce_media()
        assert [line["event"] for line in lines] == ["media_not_usable"]


@pytest.mark.django_db(transaction=True)
class TestAltogether:
    @pytest.fixture(autouse=True)
    def everybody_seen(self, redis: Redis) -> None:
        heartbeats.saw_worker("one")
        heartbeats.saw_beat()
        heartbeats.tell("one", share="1/2")

    def test_an_overdue_account_of_a_share_without_a_worker_is_told_everywhere(
        self, client: Client, owner: User, staff: User
    ) -> None:
        accounts = AccountFactory.create_batch(2, owner=owner)
        Account.objects.update(wake_at=timezone.now() - timedelta(seconds=300))
        [alone] = [account.pk for account in accounts if account.pk % 2 == 1]

        assert client.get("/readyz").status_code == 200  # pages can be served
        assert client.get("/readyz").json() == {"status": "degraded"}
        client.force_login(staff)
        checks = client.get("/readyz").json()["checks"]
        assert f"no worker serves 1 account with work ({alone})" in checks["shares"]["detail"]
        assert "2 accounts should have been looked at" in checks["wake_ups"]["detail"]

        out = StringIO()
        with pytest.raises(CommandError, match=r"Not ready: shares, wake_ups\."):
            call_command("doctor", stdout=out)
        assert "ACCOUNT_SHARE=1/n to n/n" in out.getvalue()

        stop_sending.stop(owner)
        Account.objects.update(wake_at=timezone.now() - timedelta(seconds=300))
        text = client.get("/metrics").content.decode()
        for line in (
            'paceline_check_ok{check="shares"} 0.0',
            'paceline_check_ok{check="database"} 1.0',
            "paceline_overdue_wake_ups 2.0",
            "paceline_accounts_with_work 2.0",
            "paceline_sending_stops 1.0",
        ):
            assert line in text

    def test_a_worker_that_has_gone_is_not_asked(self, redis: Redis) -> None:
        redis.hset(heartbeats.REPORTS_KEY, "gone", '{"at": 5, "share": "2/2", "media": ""}')
        assert [found.name for found in workers.told(redis)] == ["one"]
        assert not redis.hexists(heartbeats.REPORTS_KEY, "gone")
