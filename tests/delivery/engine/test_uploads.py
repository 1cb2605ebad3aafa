"""Media files go up once per run and account (SPEC M2)."""

import threading
import time
from itertools import count
from uuid import uuid4

import pytest
from django.core.files.base import ContentFile
from pytest_django import Settings
from redis import Redis

from accounts.models import Account
from activity.models import Notification
from delivery import lifecycle
from delivery.engine import pump, uploads
from delivery.engine.loop import send_loop
from delivery.models import MediaHandle, Run
from delivery.outcomes import Outcome, Rejected, TryAgain
from delivery.states import PauseReason, RunStatus
from delivery.transports.base import Message
from delivery.transports.http.files import opened
from delivery.transports.sandbox.send import SandboxTransport
from reminders.fire import fire
from reminders.models import Media
from sandbox import witness
from sandbox.log import Line
from tests.delivery.stage import Stage, counted, serve
from tests.factories import MediaFactory, PartFactory, ReminderFactory


def picture(stage: Stage) -> Media:
    return MediaFactory.create(owner=stage.owner, content=uuid4().bytes * 100, stored=True)


def fired(stage: Stage, *accounts: Account, media: list[Media], to: int = 4) -> Run:
    reminder = ReminderFactory.create(
        owner=stage.owner,
        accounts=accounts,
        recipients=stage.recipients(to),
        parts=0,
        window_start_hour=0,
        window_end_hour=24,
    )
    for position, each in enumerate(media):
        PartFactory.create(reminder=reminder, position=position, kind="media", text="Look", media=each)
    return fire(reminder)


def uploaded(stage: Stage, account: Account) -> list[Line]:
    return witness.uploads(stage.gateway.log, account.credentials["account"])


def test_a_file_goes_up_once_and_every_message_uses_its_handle(stage: Stage) -> None:
    account = stage.account()
    media = picture(stage)
    run = serve(fired(stage, account, media=[media]), account)
    assert run.status == RunStatus.SUCCESS
    [upload] = uploaded(stage, account)
    assert upload["bytes"] == media.size
    assert {line["media"] for line in stage.delivered(account)} == {MediaHandle.objects.get().handle}
    assert {line["text"] for line in stage.delivered(account)} == {"Look"}


def test_the_same_file_in_two_parts_goes_up_once(stage: Stage) -> None:
    account = stage.account()
    media = picture(stage)
    serve(fired(stage, account, media=[media, media]), account)
    assert len(uploaded(stage, account)) == 1
    assert len(stage.delivered(account)) == 8


def test_each_account_uploads_for_itself(stage: Stage) -> None:
    accounts = [stage.account(), stage.account()]
    serve(fired(stage, *accounts, media=[picture(stage)]), *accounts)
    assert [len(uploaded(stage, account)) for account in accounts] == [1, 1]


def test_another_run_uploads_again(stage: Stage) -> None:
    account = stage.account()
    media = picture(stage)
    for _ in range(2):
        serve(fired(stage, account, media=[media]), account)
    assert len(uploaded(stage, account)) == 2


def test_the_next_pump_remembers_the_handle(stage: Stage) -> None:
    account = stage.account()
    run = fired(stage, account, media=[picture(stage)])
    run.targets.exclude(pk=run.targets.all()[0].pk).update(not_before=run.fired_at.replace(year=2999))
    pump.pump(account.pk)
    run.targets.update(not_before=run.fired_at)
    serve(run, account)
    assert len(uploaded(stage, account)) == 1
    assert counted(run) == {"sent": 4}


def test_an_upload_that_fails_is_tried_again_before_anything_is_sent(stage: Stage) -> None:
    account = stage.account()
    stage.behave(account, error_rate=0.5, seed=3)
    run = serve(fired(stage, account, media=[picture(stage)]), account)
    assert run.status == RunStatus.SUCCESS
    assert len(uploaded(stage, account)) == 1


def not_uploaded(run: Run, account: Account) -> uploads.NotUploaded:
    transport = send_loop().transport(account.transport, account.credentials)
    found = send_loop().run(uploads.handles(run, account, transport))
    assert isinstance(found, uploads.NotUploaded)
    return found


def test_failures_to_upload_are_counted_until_patience_ends(stage: Stage, redis: Redis) -> None:
    """Whoever resumes after the last one starts anew."""
    account = stage.account()
    run = fired(stage, account, media=[picture(stage)])
    stage.behave(account, not_connected=True)
    failures = [not_uploaded(run, account) for _ in range(6)]
    assert [failure.attempt for failure in failures] == [1, 2, 3, 4, 5, 1]


def test_a_file_that_goes_up_ends_the_count(stage: Stage, redis: Redis) -> None:
    account, other = stage.account(), stage.account()
    run = fired(stage, account, media=[picture(stage)])
    stage.behave(account, not_connected=True)
    stage.behave(other, not_connected=True)
    assert [not_uploaded(run, account).attempt for _ in range(3)] == [1, 2, 3]
    assert not_uploaded(run, other).attempt == 1

    stage.behave(account, not_connected=False)
    transport = send_loop().transport(account.transport, account.credentials)
    assert send_loop().run(uploads.handles(run, account, transport))
    MediaHandle.objects.all().delete()
    stage.behave(account, not_connected=True)
    assert not_uploaded(run, account).attempt == 1


def test_an_account_whose_uploads_find_no_session_goes_offline(stage: Stage, quick: Settings) -> None:
    quick.TROUBLE_OFFLINE_MINUTES = 0.3 / 60
    account = stage.account()
    stage.behave(account, not_connected=True)
    run = serve(fired(stage, account, media=[picture(stage)]), account)
    account.refresh_from_db()
    assert account.status == Account.Status.OFFLINE
    assert (run.status, run.pause_reason) == (RunStatus.PAUSED, PauseReason.ACCOUNT_OFFLINE)
    assert counted(run) == {"pending": 4}


def test_uploads_that_fail_in_a_row_are_the_trouble_of_the_service_until_it_lasts_too_long(
    stage: Stage, quick: Settings
) -> None:
    quick.TROUBLE_WAIT_MAX_MINUTES = 0.2 / 60
    account = stage.account()
    stage.behave(account, garbage=1)
    run = fired(stage, account, media=[picture(stage)])
    pump.pump(account.pk)
    account.refresh_from_db()
    assert (account.trouble_kind, counted(run)) == ("server_errors", {"pending": 4})
    assert run.status == RunStatus.RUNNING
    quick.TROUBLE_OFFLINE_MINUTES = 0.3 / 60
    serve(run, account)
    assert (run.status, run.pause_reason) == (RunStatus.PAUSED, PauseReason.ERROR_RATE)
    assert "did not take the file" in run.summary
    assert counted(run) == {"pending": 4}


def test_a_run_that_is_canceled_while_its_file_goes_up_sends_nothing(stage: Stage) -> None:
    account = stage.account()
    stage.behave(account, latency_ms=400)
    run = fired(stage, account, media=[picture(stage)])
    thread = threading.Thread(target=pump.pump, args=(account.pk,))
    thread.start()
    while not uploaded(stage, account):
        time.sleep(0.01)
    lifecycle.cancel(run)
    thread.join()
    run.refresh_from_db()
    assert (run.status, counted(run)) == (RunStatus.CANCELED, {"skipped": 4})
    assert stage.received(account) == []


def test_what_to_do_depends_on_whose_fault_it_was(stage: Stage, redis: Redis) -> None:
    account = stage.account()
    run = fired(stage, account, media=[picture(stage)])
    stage.behave(account, not_connected=True)
    assert not_uploaded(run, account).sentence().endswith("Resume to try again.")


def test_a_file_that_the_worker_cannot_read_blames_nobody_and_goes_out_once_it_can(
    stage: Stage,
) -> None:
    account = stage.account()
    media = picture(stage)
    storage, name = media.file.storage, media.file.name or ""
    with storage.open(name) as file:
        content = file.read()
    storage.delete(name)
    run = fired(stage, account, media=[media])
    pump.pump(account.pk)

    run.refresh_from_db()
    account.refresh_from_db()
    assert (run.status, counted(run)) == (RunStatus.RUNNING, {"pending": 4})
    assert (account.status, account.waiting_for) == ("active", "media_unreadable")
    assert run.targets.filter(attempts__gt=0).count() == 0
    [told] = Notification.objects.all()
    assert f"The worker cannot read the file {media.filename} in MEDIA_ROOT." in told.body
    assert stage.received(account) == []

    storage.save(name, ContentFile(content))
    assert serve(run, account).status == RunStatus.SUCCESS


def test_a_folder_that_vanishes_in_the_middle_of_a_run_fails_nobody(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kind that sends files inside its messages opens them for each of these."""
    account = stage.account()
    media = picture(stage)
    storage, name = media.file.storage, media.file.name or ""
    with storage.open(name) as file:
        content = file.read()
    run = fired(stage, account, media=[media])
    send, calls = SandboxTransport.send, count(1)

    async def send_with_file(self: SandboxTransport, message: Message, key: str) -> Outcome:
        if next(calls) == 2:
            storage.delete(name)
        assert message.media is not None
        file = await opened(message.media, most_bytes=10**6)
        if isinstance(file, Rejected | TryAgain):
            return file
        file.close()
        return await send(self, message, key)

    monkeypatch.setattr(SandboxTransport, "send", send_with_file)
    pump.pump(account.pk)
    run.refresh_from_db()
    account.refresh_from_db()
    assert account.waiting_for == "media_unreadable"
    assert run.failed == run.unconfirmed == run.sending == 0
    assert run.pending >= 1
    assert not run.targets.filter(status="pending", attempts__gt=0).exists()

    storage.save(name, ContentFile(content))
    run = serve(run, account)
    assert (run.status, counted(run)) == (RunStatus.SUCCESS, {"sent": 4})
    assert len(stage.delivered(account)) == 4


def test_what_is_sent_is_what_was_there_when_the_run_was_fired(stage: Stage) -> None:
    account = stage.account()
    media = picture(stage)
    run = fired(stage, account, media=[media])
    run.reminder.parts.all().delete()
    serve(run, account)
    assert len(uploaded(stage, account)) == 1
    assert MediaHandle.objects.get().sha256 == media.sha256
