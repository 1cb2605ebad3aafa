"""A test send to oneself: through the account's queue and limits, outside every run."""

import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.core.exceptions import PermissionDenied
from django.utils import timezone
from pytest_django import Settings
from redis import Redis

from accounts import own_addresses
from accounts.models import Account, OwnAddress, TestMessage, User
from accounts.own_addresses import NotAllowedError
from accounts.recipients import consent
from activity.models import Attempt
from delivery import lifecycle
from delivery.engine import pump, wakeups
from delivery.engine.lease import lease_key
from delivery.engine.permits import Permits
from delivery.engine.wakeups import Rest
from delivery.models import Run
from delivery.outcomes import HeldBack
from delivery.parts import FrozenPart
from delivery.trial import send, store
from delivery.trial.store import Trial, TrialState
from tests.delivery.door import Door
from tests.delivery.faulty_gateway import faulty_gateway
from tests.delivery.stage import Stage, counted, noon_zone
from tests.factories import MediaFactory, RecipientFactory, TeamMateFactory

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("redis")]
TO = "+60123456789"


def trial(
    account: Account, *parts: FrozenPart, values: dict[str, object] | None = None, **more: Any
) -> Trial:
    given = parts or (FrozenPart(kind="text", text="Hello {{ name }}"),)
    asked: dict[str, Any] = {
        "account_id": account.pk,
        "person_id": account.owner_id,
        "reminder_id": 1,
        "address": TO,
        "action": "message",
        "subject": "",
        "parts": [part.as_json() for part in given],
        "values": {"name": "Anna"} if values is None else values,
    }
    return Trial(**asked | more)


def code_trial(account: Account, **more: Any) -> Trial:
    return trial(account, kind="code", **more | {"values": {}, "parts": []})


def own(account: Account, person: User, address: str = TO) -> None:
    """The person confirmed the address before."""
    OwnAddress.objects.get_or_create(
        account=account, person=person, address=address, defaults={"confirmed_at": timezone.now()}
    )


def ask(stage: Stage, asked: Trial) -> Trial:
    """Ask for it, and do what its task does."""
    if asked.kind == "test":
        own(Account.objects.get(pk=asked.account_id), stage.owner, asked.address)
    send.ask(asked, by=stage.owner)
    send.send(asked.id)
    return result(asked)


def result(asked: Trial) -> Trial:
    found = store.find(asked.id)
    assert found is not None
    return found


def wait_until(happened: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_it_arrives_rendered_and_the_ledger_names_its_address_and_no_target(stage: Stage) -> None:
    account = stage.account()
    found = ask(stage, trial(account))
    assert (found.state, found.sentence) == (TrialState.SENT, f"Sent to {TO}.")
    (line,) = stage.delivered(account)
    assert (line["to"], line["text"]) == (TO, "Hello Anna")
    row = Attempt.objects.get()
    assert (row.account, row.run, row.target, row.outcome) == (account, None, None, "sent")
    assert row.address == TO
    assert not Run.objects.exists()


def test_parts_and_files_come_in_order(stage: Stage) -> None:
    media = MediaFactory.create(owner=stage.owner, stored=True)
    picture = FrozenPart(
        kind="media",
        text="Look",
        sha256=media.sha256,
        file=media.file.name or "",
        filename="fair.png",
        content_type="image/png",
    )
    account = stage.account()
    assert ask(stage, trial(account, FrozenPart(kind="text", text="One"), picture)).state is TrialState.SENT
    assert [line["text"] for line in stage.delivered(account)] == ["One", "Look"]
    assert list(Attempt.objects.order_by("part").values_list("part", flat=True)) == [0, 1]


def test_it_is_sent_once_however_often_its_task_comes(stage: Stage) -> None:
    account = stage.account()
    asked = trial(account)
    ask(stage, asked)
    send.send(asked.id)
    assert len(stage.delivered(account)) == 1


def test_one_that_was_interrupted_is_not_sent_again(stage: Stage) -> None:
    account = stage.account()
    asked = trial(account)
    own(account, stage.owner)
    send.ask(asked, by=stage.owner)
    assert own_addresses.begin(TestMessage.objects.get(), fence=account.fence)
    send.send(asked.id)
    assert result(asked).state is TrialState.UNKNOWN
    assert not stage.delivered(account)


def test_it_counts_against_the_limits(stage: Stage) -> None:
    account = stage.account(limits={"per_day": 1})
    assert ask(stage, trial(account)).state is TrialState.SENT
    second = ask(stage, trial(account, values={"name": "Ben"}))
    assert second.state is TrialState.FAILED
    assert "limit per day reached until" in second.sentence
    assert len(stage.delivered(account)) == 1


def test_more_parts_than_a_limit_could_ever_let_out_are_refused(stage: Stage) -> None:
    account = stage.account(limits={"per_day": 1})
    found = ask(stage, trial(account, *[FrozenPart(kind="text", text="x")] * 2))
    assert found.state is TrialState.FAILED
    assert "Use fewer parts" in found.sentence


def test_an_account_in_the_middle_of_a_shift_lets_it_in_before_the_next_pump(
    stage: Stage, redis: Redis
) -> None:
    account = stage.account()
    run = stage.fire(account, to=1)
    held = wakeups.take_lease(account.pk)
    assert held is not None
    asked = trial(account)
    assert ask(stage, asked).state is TrialState.WAITING
    wakeups.end_shift(held, Rest.soon())
    pump.pump(account.pk)
    assert counted(run) == {"pending": 1}  # the pump stood back
    send.send(asked.id)
    assert result(asked).state is TrialState.SENT
    pump.pump(account.pk)
    assert counted(run) == {"sent": 1}


def test_a_test_that_waited_too_long_is_given_up(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(send, "PATIENCE", -1)
    account = stage.account()
    assert "busy for too long" in ask(stage, trial(account)).sentence


def test_a_stopped_account_says_so_at_once(stage: Stage) -> None:
    with pytest.raises(NotAllowedError, match=r"is offline\. Start it first\."):
        send.ask(trial(stage.account(offline=True)), by=stage.owner)
    assert not TestMessage.objects.exists()


def test_an_account_that_was_stopped_meanwhile_sends_nothing(stage: Stage) -> None:
    account = stage.account()
    own(account, stage.owner)
    asked = send.ask(trial(account), by=stage.owner)
    lifecycle.pause_account(account, by=stage.owner)
    send.send(asked.id)
    found = result(asked)
    assert (found.state, found.sentence) == (TrialState.FAILED, f"{account} is paused. Start it first.")
    assert not stage.received(account)


def test_a_refusal_of_the_service_is_told(stage: Stage) -> None:
    account = stage.account()
    stage.behave(account, error_rate=1.0)
    found = ask(stage, trial(account))
    assert found.state in (TrialState.FAILED, TrialState.UNKNOWN)
    assert Attempt.objects.exclude(outcome="sent").count() == 1


def test_a_missing_variable_sends_nothing_and_gives_the_permit_back(stage: Stage) -> None:
    account = stage.account(limits={"per_day": 1})
    found = ask(stage, trial(account, values={}))
    assert "No value for {{ name }}" in found.sentence
    assert not Attempt.objects.exists()
    assert ask(stage, trial(account)).state is TrialState.SENT


def test_credentials_that_cannot_be_used_are_told(stage: Stage) -> None:
    account = stage.account()
    Account.objects.filter(pk=account.pk).update(transport="sandbox", credentials={})
    assert ask(stage, trial(account)).state is TrialState.FAILED


@pytest.mark.parametrize("kind", ["test", "code"])
def test_a_stranger_and_a_reader_send_nothing(stage: Stage, stranger: User, kind: str) -> None:
    account = stage.account()
    reader = TeamMateFactory.create(owner=stage.owner).mate
    for person in (stranger, reader):
        own(account, person)
        with pytest.raises(PermissionDenied):
            send.ask(trial(account, kind=kind, person_id=person.pk), by=person)
    assert not TestMessage.objects.exists()


def test_an_address_that_is_not_confirmed_gets_nothing(stage: Stage) -> None:
    account = stage.account()
    mate = TeamMateFactory.create(owner=stage.owner, manage=True).mate
    own(account, mate)  # who confirmed it for themselves alone
    with pytest.raises(NotAllowedError, match="not confirmed"):
        send.ask(trial(account), by=stage.owner)
    assert not stage.received(account)


def test_a_code_arrives_and_opens_the_address_for_tests(stage: Stage) -> None:
    account = stage.account()
    asked = code_trial(account)
    found = ask(stage, asked)
    assert (found.state, found.sentence) == (TrialState.SENT, f"Code sent to {TO}.")
    (line,) = stage.delivered(account)
    assert f"“{stage.owner.username}” asked" in line["text"]
    code = line["text"].split()[0]
    assert code not in repr(found)  # nothing but its hash is kept anywhere
    own_addresses.confirm(account, stage.owner, TO, code)
    send.ask(follows := trial(account), by=stage.owner)
    send.send(follows.id)
    assert result(follows).state is TrialState.SENT
    assert list(Attempt.objects.values_list("address", flat=True)) == [TO, TO]


def test_two_people_have_codes_of_their_own(stage: Stage) -> None:
    account = stage.account()
    mate = TeamMateFactory.create(owner=stage.owner, manage=True).mate
    ask(stage, code_trial(account))
    send.ask(second := code_trial(account, person_id=mate.pk), by=mate)
    send.send(second.id)
    mine, theirs = (line["text"].split()[0] for line in stage.delivered(account))
    own_addresses.confirm(account, stage.owner, TO, mine)
    assert not own_addresses.is_confirmed(account.pk, mate.pk, TO)
    own_addresses.confirm(account, mate, TO, theirs)
    assert own_addresses.is_confirmed(account.pk, mate.pk, TO)


def test_a_double_click_is_one_code_and_one_place_under_its_cap(stage: Stage) -> None:
    account = stage.account()
    first, second = (send.ask(code_trial(account), by=stage.owner) for _ in range(2))
    assert first.id == second.id
    for _ in range(2):  # and a task that comes twice
        send.send(first.id)
    assert len(stage.delivered(account)) == 1
    assert TestMessage.objects.count() == 1


def test_who_opted_out_after_it_was_asked_for_gets_nothing(stage: Stage) -> None:
    account = stage.account()
    recipient = RecipientFactory.create(owner=stage.owner, address=TO)
    own(account, stage.owner)
    asked = send.ask(trial(account), by=stage.owner)
    consent.opt_out(recipient, how="wrote STOP")
    send.send(asked.id)
    assert "opted out" in result(asked).sentence
    assert not stage.received(account)


def test_who_opts_out_between_two_parts_gets_no_more(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    account = stage.account()
    recipient = RecipientFactory.create(owner=stage.owner, address=TO)
    write_down = send._Sending._write_down

    def and_opt_out(*args: Any) -> None:
        write_down(*args)
        consent.opt_out(recipient, how="wrote STOP")

    monkeypatch.setattr(send._Sending, "_write_down", and_opt_out)
    found = ask(stage, trial(account, *[FrozenPart(kind="text", text="x")] * 2))
    assert found.state is TrialState.FAILED
    assert len(stage.received(account)) == 1


def test_who_lost_their_access_meanwhile_sends_nothing(stage: Stage) -> None:
    account = stage.account()
    share = TeamMateFactory.create(owner=stage.owner, manage=True)
    own(account, share.mate)
    asked = send.ask(trial(account, person_id=share.mate.pk), by=share.mate)
    share.delete()
    send.send(asked.id)
    assert "may not send" in result(asked).sentence
    assert not stage.received(account)


def test_who_opts_out_while_the_connection_is_made_gets_nothing(stage: Stage, quick: Settings) -> None:
    quick.SEND_TIMEOUT_SECONDS, quick.CONNECT_TIMEOUT_SECONDS = 24, 12
    account = stage.account(limits={"per_day": 1})
    recipient = RecipientFactory.create(owner=stage.owner, address=TO)
    own(account, stage.owner)
    with Door(stage.gateway.url, closed=True) as door:
        account.credentials = {**account.credentials, "base_url": door.url}
        account.save(update_fields=["credentials"])
        asked = send.ask(trial(account), by=stage.owner)
        sending = threading.Thread(target=send.send, args=(asked.id,))
        sending.start()
        wait_until(lambda: TestMessage.objects.filter(begun_at__isnull=False).exists())
        time.sleep(0.5)  # it connects
        consent.opt_out(recipient, how="wrote STOP")
        door.open()
        sending.join(30)
    found = result(asked)
    assert (found.state, "opted out" in found.sentence) == (TrialState.FAILED, True)
    assert not stage.received(account)
    assert not Attempt.objects.exists()


def test_a_worker_whose_clock_is_set_while_the_connection_is_made_sends_nothing(
    stage: Stage, quick: Settings
) -> None:
    """The ledger would get a wrong time."""
    quick.SEND_TIMEOUT_SECONDS, quick.CONNECT_TIMEOUT_SECONDS = 24, 12
    account = stage.account(limits={"per_day": 1})
    own(account, stage.owner)
    with Door(stage.gateway.url, closed=True) as door:
        account.credentials = {**account.credentials, "base_url": door.url}
        account.save(update_fields=["credentials"])
        asked = send.ask(trial(account), by=stage.owner)
        sending = threading.Thread(target=send.send, args=(asked.id,))
        sending.start()
        wait_until(lambda: TestMessage.objects.filter(begun_at__isnull=False).exists())
        time.sleep(0.5)  # it connects
        with time_machine.travel(timezone.now() - timedelta(hours=1)):
            door.open()
            sending.join(30)
    assert "clock of the worker" in result(asked).sentence
    assert not stage.received(account)
    assert not Attempt.objects.exists()


def test_what_never_left_is_in_no_ledger_and_gives_its_permit_back(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A transport that was too busy with messages of the same owner kept it back."""
    account = stage.account(limits={"per_day": 1})

    async def busy(*_: object) -> HeldBack:
        return HeldBack(reason="too many e-mails of this owner were on their way")

    with monkeypatch.context() as patch:
        patch.setattr("delivery.transports.sandbox.send.SandboxTransport.send", busy)
        found = ask(stage, trial(account))
    assert (found.state, "too many" in found.sentence) == (TrialState.FAILED, True)
    assert not Attempt.objects.exists()
    assert ask(stage, trial(account, values={"name": "Ben"})).state is TrialState.SENT


def test_a_worker_that_lost_the_account_before_it_began_sends_nothing_and_comes_back(
    stage: Stage, redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever took the account over has counted without this test: it needs a new permit."""
    account = stage.account()
    own(account, stage.owner)
    asked = send.ask(trial(account), by=stage.owner)
    take = Permits.take

    def and_lose(permits: Permits, **values: Any) -> object:
        answer = take(permits, **values)
        redis.delete(lease_key(account.pk))
        assert wakeups.take_lease(account.pk) is not None
        return answer

    with monkeypatch.context() as patch:
        patch.setattr(Permits, "take", and_lose)
        send.send(asked.id)
    assert not stage.received(account)
    assert TestMessage.objects.get().begun_at is None
    redis.delete(lease_key(account.pk))
    send.send(asked.id)
    assert result(asked).state is TrialState.SENT


def test_a_worker_that_lost_the_account_after_it_began_sends_nothing(
    stage: Stage, redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was suspended for longer than its lease lasts, and does not know it yet."""
    account = stage.account()
    own(account, stage.owner)
    asked = send.ask(trial(account), by=stage.owner)
    begin = own_addresses.begin

    def and_lose(*args: Any, **values: Any) -> bool:
        began = begin(*args, **values)
        redis.delete(lease_key(account.pk))
        assert wakeups.take_lease(account.pk) is not None
        return began

    monkeypatch.setattr(own_addresses, "begin", and_lose)
    send.send(asked.id)
    assert not stage.received(account)
    assert result(asked).state is TrialState.FAILED


def test_an_address_that_is_no_longer_confirmed_gets_nothing(stage: Stage) -> None:
    account = stage.account()
    own(account, stage.owner)
    asked = send.ask(trial(account), by=stage.owner)
    OwnAddress.objects.all().delete()
    send.send(asked.id)
    assert "not confirmed" in result(asked).sentence
    assert not stage.received(account)


def test_a_test_leaves_outside_of_every_delivery_window(stage: Stage) -> None:
    """The window protects recipients; whoever asked for a test wants it now."""
    account = stage.account()
    stage.fire(account, to=1, window_start_hour=0, window_end_hour=1, zone=noon_zone())
    assert ask(stage, trial(account)).state is TrialState.SENT


def test_a_held_account_sends_no_test(stage: Stage) -> None:
    account = stage.account()
    Account.objects.filter(pk=account.pk).update(held_until=timezone.now() + timedelta(hours=1))
    assert ask(stage, trial(account)).state is TrialState.FAILED
    assert not stage.received(account)


def test_a_lock_on_first_contacts_that_a_test_meets_holds_for_the_account(stage: Stage) -> None:
    account = stage.account()
    with faulty_gateway() as waha:
        Account.objects.filter(pk=account.pk).update(transport="waha")
        account.credentials = {"base_url": waha.url, "session": "default", "api_key": "a-secret-of-waha"}
        account.save(update_fields=["credentials"])
        waha.say(500, {"exception": {"message": "2 UNKNOWN: server returned error 463"}})
        assert ask(stage, trial(account)).state is TrialState.FAILED
    account.refresh_from_db()
    assert account.first_contacts_until is not None


def test_a_block_that_a_test_meets_flags_the_account(stage: Stage) -> None:
    account = stage.account()
    stage.behave(account, ban_above_per_minute=1)
    assert ask(stage, trial(account)).state is TrialState.SENT
    assert ask(stage, trial(account, values={"name": "Ben"})).state is TrialState.FAILED
    account.refresh_from_db()
    assert account.status == Account.Status.FLAGGED


def test_a_trial_that_nobody_knows_is_left_alone() -> None:
    send.send("no-such-trial")
    assert store.find("no-such-trial") is None
