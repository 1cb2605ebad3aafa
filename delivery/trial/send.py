"""Sends a test to oneself: outside every run's counts, inside the account's limits (SPEC M3).

A test goes by the account's own queue, takes the account's lease like a pump and a permit for every part, and leaves
rows in the ledger that name its address and no target. While the account is sending, the test waits for the end of
the shift. Delivery windows do not apply: they protect recipients, and this person asked for the message. Its
address is confirmed (`accounts/own_addresses.py`), and whoever opted out is looked up again right before it leaves.
"""

import asyncio
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import assert_never

from django.conf import settings
from django.db import DatabaseError, connection, transaction

from accounts import own_addresses
from accounts.encryption import UnreadableSecretError
from accounts.models import Account, Role, TestMessage, User
from accounts.own_addresses import NotAllowedError, TakenOverError
from accounts.roles import may_touch, require_touch
from activity.models import Attempt
from activity.storable import storable
from audit.record import record
from config.celery import app
from delivery.engine import clock_reading, effects, loop, uploads, wakeups
from delivery.engine.last_look import Look
from delivery.engine.lease import Lease
from delivery.engine.loop import Landed, SendRequest, send_loop
from delivery.engine.permits import Permits
from delivery.engine.trouble import AccountTrouble
from delivery.engine.wakeups import Rest
from delivery.file_addresses.offered import addresses_for
from delivery.limiter import Away, Granted, LeaseLost, Unit, Wait
from delivery.outcomes import NEVER_LEFT, HeldBack, Outcome, Rejected, Sent, Unknown, name_of
from delivery.parts import FrozenPart, MessageBuilder, MissingVariableError, thaw
from delivery.recovery import stop_sending
from delivery.sentences import account_sentence
from delivery.states import WaitReason
from delivery.transports.base import Transport, TransportError, Uploaded
from delivery.transports.leaving import HeldBackError
from delivery.trial import store
from delivery.trial.store import Trial, TrialState

TASK = "delivery.test_send"
LOOK_AGAIN = 1.0  # seconds until an account that is in the middle of a shift is asked again
PATIENCE = 150.0  # seconds for which a person is asked to wait: a shift and some
LONGEST_WAIT = 60.0  # seconds until a permit; where it takes longer, the page says until when


def ask(trial: Trial, *, by: User) -> Trial:
    """Have a test or a code sent as soon as the account's turn comes; `store.find` returns its result.

    A double click is one message: the answer is the trial of the first. Raise NotAllowedError, whose text is for
    people, where nothing may be sent to the address or from the account.
    """
    account = Account.objects.get(pk=trial.account_id)
    require_touch(account, by, Role.SEND)
    if why := _stopped(account):
        raise NotAllowedError(why)
    kept = store.keep_once(trial)
    if kept.id != trial.id:
        return kept
    try:
        with transaction.atomic():
            message = RESERVE[trial.kind](account, by, trial.address)
            what = "address.added" if trial.kind == "code" else "reminder.tested"
            record(what, account, by=by, after={"reminder": trial.reminder_id, "test": message.pk})
    except NotAllowedError as error:
        store.settle(trial, TrialState.FAILED, str(error))  # what follows is no double click
        raise
    trial = store.keep(replace(trial, message_id=message.pk))
    _come_back(trial, 0)
    return trial


RESERVE = {"test": own_addresses.reserve_test, "code": own_addresses.reserve_code}


def _stopped(account: Account) -> str:
    if account.status == Account.Status.ACTIVE and account.archived_at is None:
        return ""
    return f"{account} is {account.get_status_display().lower()}. Start it first."


def send(trial_id: str) -> None:
    """Send a test, or come back for it.

    1. Take the account's lease, ahead of the next pump, or look again in a second.
    2. Take a permit for every part, or come back when the limiter says so.
    3. Send the parts in order and write each into the ledger.
    4. Say what became of it, and let the next pump in.
    """
    trial = store.find(trial_id)
    if trial is None or trial.over:
        return
    if time.time() > trial.asked_at + PATIENCE:
        store.settle(trial, TrialState.FAILED, "Its account was busy for too long. Try again later.")
        return
    lease = wakeups.take_lease(trial.account_id, ahead=True)
    if lease is None:
        _come_back(trial, LOOK_AGAIN)
        return
    try:
        _with_lease(trial, lease)
    finally:
        wakeups.end_shift(lease, Rest.soon())
        connection.close()


def _with_lease(trial: Trial, lease: Lease) -> None:
    message = TestMessage.objects.select_related("account", "person").filter(pk=trial.message_id).first()
    why = _why_not(message, lease)
    if message is None or why:
        store.settle(trial, TrialState.FAILED, why)
        return
    account = message.account
    try:
        transport = send_loop().transport(account.transport, account.credentials, owner=account.owner_id)
    except (TransportError, UnreadableSecretError) as error:
        store.settle(trial, TrialState.FAILED, str(error))
        return
    permits = Permits(account, lease, trial.action)
    if never := permits.why_never(trial.messages):
        store.settle(trial, TrialState.FAILED, never)
        return
    answer = permits.take(cost=trial.messages, error_rate=0.0, in_hand={}, in_flight=0)
    match answer:
        case Granted(units=(unit, *others)):
            permits.give_back(permit for other in others for permit in other.permits)
            _with_permits(trial, _Sending(message, lease, transport, permits), unit)
            permits.report()
        case Granted():
            raise AssertionError("The limiter granted nothing.")
        case Wait(until_ms=until_ms, reason=reason, now_ms=now_ms):
            _wait(trial, (until_ms - now_ms) / 1000, reason)
        case LeaseLost() | Away():
            _come_back(trial, LOOK_AGAIN)
        case _:
            assert_never(answer)


def _why_not(message: TestMessage | None, lease: Lease) -> str:
    """Return what has changed since the message was asked for, so that it may not leave any more; else nothing."""
    if message is None:
        return "This test is not known any more. Ask for it again."
    account = message.account
    account.refresh_from_db(fields=["status", "archived_at", "fence"])
    message.person.refresh_from_db(fields=["is_active", "is_staff"])
    if account.fence != lease.fence:
        return "Another worker took the account over. Try again."
    if not may_touch(account, message.person, Role.SEND):
        return f"You may not send from {account} any more."
    if (stop := stop_sending.stop_of(account.owner_id)) is not None:
        return stop.sentence()
    return _stopped(account) or _why_not_there(message)


def _why_not_there(message: TestMessage) -> str:
    """Return why nothing may go to the address; a code may go to one that is not confirmed yet."""
    if (why := own_addresses.why_not(message.account, message.address)) or message.kind == message.Kind.CODE:
        return why
    return own_addresses.why_not_own(message.account_id, message.person_id, message.address)


def _wait(trial: Trial, seconds: float, reason: WaitReason) -> None:
    if seconds <= LONGEST_WAIT:
        _come_back(trial, seconds)
        return
    until = datetime.fromtimestamp(time.time() + seconds, UTC)
    why = account_sentence.reason_of(reason).rstrip(".") or "the account waits between two messages"
    store.settle(trial, TrialState.FAILED, f"Nothing was sent: {why} until {until:%Y-%m-%d %H:%M} UTC.")


def _with_permits(trial: Trial, sending: "_Sending", unit: Unit) -> None:
    try:
        began = own_addresses.begin(sending.message, fence=sending.lease.fence, messages=trial.messages)
    except TakenOverError:
        sending.permits.give_back(unit.permits)
        _come_back(trial, LOOK_AGAIN)
        return
    if not began:
        sending.permits.give_back(unit.permits)
        store.settle(trial, TrialState.UNKNOWN, "It was interrupted. Check whether it arrived.")
        return
    if trial.kind == TestMessage.Kind.CODE:
        trial = _with_code(trial, sending.message)
    connection.close()  # back to the pool while the network is waited for
    outcome = send_loop().run(sending.deliver(trial, unit))
    own_addresses.end(sending.message)
    match outcome:
        case Sent():
            what = "Code sent" if trial.kind == TestMessage.Kind.CODE else "Sent"
            store.settle(_bare(trial), TrialState.SENT, f"{what} to {trial.address}.")
        case Unknown(reason=reason):
            store.settle(_bare(trial), TrialState.UNKNOWN, f"It may have arrived: {reason}.")
        case _:
            store.settle(_bare(trial), TrialState.FAILED, f"Not sent: {outcome.reason}.")


def _with_code(trial: Trial, message: TestMessage) -> Trial:
    """Return the trial with the code in it: it is made only now, so that nothing but its hash is stored."""
    text = own_addresses.text_of(own_addresses.issue(message), message.person)
    part = FrozenPart(kind="text", text="{{ text }}").as_json()
    subject = "Your Paceline code" if trial.action == "email" else ""
    return replace(trial, parts=[part], values={"text": text}, subject=subject)


def _bare(trial: Trial) -> Trial:
    """Return the trial as it may be stored: without a code."""
    return trial if trial.kind == TestMessage.Kind.TEST else replace(trial, parts=[], values={})


class _Sending:
    """One test on its way, under its account's lease."""

    def __init__(self, message: TestMessage, lease: Lease, transport: Transport, permits: Permits) -> None:
        self.message = message
        self.account = message.account
        self.lease = lease
        self.transport = transport
        self.permits = permits
        self.lost = False

    async def deliver(self, trial: Trial, unit: Unit) -> Outcome:
        """Send every part in order, at its time; return the outcome of the first that failed, else of the last."""
        parts, left = thaw([dict(part) for part in trial.parts]), list(unit.permits)
        with send_loop().renewals.renewing(self.lease, lost=self._lose):
            try:
                handles = await self._upload(parts)
                if not isinstance(handles, Mapping):
                    return handles
                await asyncio.sleep(max(0.0, self.permits.moment(unit) - time.monotonic()))
                return await self._deliver_parts(trial, parts, handles, left)
            except MissingVariableError as error:
                return Rejected(reason=str(error))
            finally:
                self.permits.give_back(left)

    async def _deliver_parts(
        self, trial: Trial, parts: Sequence[FrozenPart], handles: Mapping[str, str], left: list[str]
    ) -> Outcome:
        """Send the parts and return an outcome as `deliver` does; take each used permit out of `left`."""
        files = await send_loop().batches.ask(partial(addresses_for, self.account.pk, self.transport))
        builder = MessageBuilder(
            action=trial.action,
            subject=trial.subject,
            open_file=uploads.open_file,
            handles=handles,
            address_of=files.of_run(None, patience=self.transport.timeouts.upload) if files else None,
        )
        outcome: Outcome = Unknown(reason="nothing was sent")
        for number, part in enumerate(parts):
            message = builder.message(
                part, address=self.message.address, values=trial.values, key=trial.id, number=number
            )
            if (refused := await self._nobody_there(trial)) is not None:
                return refused
            request = SendRequest(
                tag=number, message=message, key=f"{trial.id}-{number}", look=_TestLook(self)
            )
            outcome = await self._carry(request)
            if isinstance(outcome, NEVER_LEFT):
                break  # its permit was not used
            self.permits.settle(left.pop(0))
            if not isinstance(outcome, Sent):
                break
            if left:
                await asyncio.sleep(random.uniform(settings.PART_GAP_MIN_MS, settings.PART_GAP_MAX_MS) / 1000)
        return outcome

    async def _nobody_there(self, trial: Trial) -> Rejected | None:
        """Ask first whether the number of a code exists, where the service answers that: it may be mistyped."""
        asks = self.transport.capabilities.number_check and trial.address.startswith("+")
        if trial.kind != TestMessage.Kind.CODE or not asks:
            return None
        return await loop.refused(self.transport, trial.address)

    def _lose(self) -> None:
        self.lost = True

    async def _upload(self, parts: tuple[FrozenPart, ...]) -> Mapping[str, str] | Outcome:
        handles: dict[str, str] = {}
        for part in parts:
            if (
                part.kind != "media"
                or not self.transport.capabilities.media_handles
                or part.sha256 in handles
            ):
                continue
            uploaded = await self.transport.upload(uploads.as_media(part))
            if not isinstance(uploaded, Uploaded):
                return uploaded
            handles[part.sha256] = uploaded.handle
        return handles

    async def _carry(self, request: SendRequest) -> Outcome:
        began, arrived = datetime.now(UTC), asyncio.get_running_loop().create_future()
        send_loop().launch(self.transport, [request], arrived.set_result)
        landed: Landed = await arrived
        if not isinstance(landed.outcome, HeldBack):
            await send_loop().batches.ask(partial(self._write_down, landed, began))
        return landed.outcome

    def _write_down(self, landed: Landed, began: datetime) -> None:
        """Write the ledger's row, and do to the account what the answer asks for."""
        trouble = AccountTrouble(self.account, self.lease)
        verdict = trouble.judge(landed.outcome, attempt=1, idempotent=False, began_at=began)
        Attempt.objects.create(
            at=began,
            owner_id=self.account.owner_id,
            account=self.account,
            address=self.message.address,
            action=self.permits.action,
            part=landed.tag,
            outcome=name_of(landed.outcome),
            provider_id=storable(getattr(landed.outcome, "provider_id", ""), 255),
            error=storable(verdict.error, 500),
            took_ms=landed.took_ms,
        )
        permits = {self.permits.action: self.permits}
        for step in effects.steps(verdict, trouble, permits, action=self.permits.action):
            step()


class _TestLook(Look):
    """The last look at a test, right before each part leaves: opt-outs, stops, access and the lease."""

    def __init__(self, sending: _Sending) -> None:
        super().__init__()
        self._sending = sending

    async def check(self) -> None:
        """Raise HeldBackError unless the test may leave now."""
        if self._sending.lost:
            raise HeldBackError("another worker took the account over")
        try:
            why = await send_loop().batches.ask(self._why_not)
        except DatabaseError as error:
            raise HeldBackError("the database does not answer") from error
        if why:
            raise HeldBackError(why.rstrip("."))

    def _why_not(self) -> str:
        """Return why the test may not leave any more, or nothing. The ledger takes its time from this clock."""
        return clock_reading.why_not() or _why_not(self._sending.message, self._sending.lease)


def _come_back(trial: Trial, seconds: float) -> None:
    app.send_task(TASK, (trial.id,), queue=wakeups.queue_name(trial.account_id), countdown=seconds or None)
