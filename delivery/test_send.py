"""A test send to oneself: outside every run's counts, inside the account's limits (SPEC M3).

It goes by the account's own queue, takes the account's lease like a pump and a permit for every part, and leaves
rows in the ledger that name no target. An account in the middle of a shift lets it in at the end of it.
"""

import asyncio
import random
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import assert_never

from django.conf import settings
from django.db import connection

from accounts.encryption import UnreadableSecretError
from accounts.models import Account, User
from accounts.roles import require_touch
from activity.looks import WAIT_WORDS
from activity.models import Attempt
from config.celery import app
from delivery import knobs, lifecycle, media, queues, retry, tickets
from delivery.lease import Lease
from delivery.limiter import Away, Granted, LeaseLost, Unit, Wait
from delivery.outcomes import Outcome, Rejected, Sent, Unknown, name_of
from delivery.parts import FrozenPart, Letter, thaw
from delivery.permits import Permits
from delivery.queues import Rest
from delivery.render import MissingVariableError
from delivery.retry import Effect
from delivery.slowdown import SlowDown
from delivery.states import WaitReason
from delivery.storable import storable
from delivery.tickets import Ticket, TicketState
from delivery.transports.base import Transport, TransportError, Uploaded
from delivery.wire import Landed, Parcel, wire

TASK = "delivery.test_send"
LOOK_AGAIN = 1.0  # seconds until an account that is in the middle of a shift is asked again
PATIENCE = 150.0  # seconds for which a person is asked to wait: a shift and some
LONGEST_WAIT = 60.0  # seconds until a permit; where it takes longer, the page says until when


def ask(ticket: Ticket, *, by: User) -> Ticket:
    """Have it sent as soon as the account's turn comes; `tickets.find` says what became of it.

    A double click is one test: the answer is the ticket of the first.
    """
    account = Account.objects.get(pk=ticket.account_id)
    require_touch(account, by)
    kept = tickets.keep_once(ticket)
    if kept.id != ticket.id:
        return kept
    if account.status != Account.Status.ACTIVE:
        return _refuse(ticket, account)
    _come_back(ticket, 0)
    return ticket


def _refuse(ticket: Ticket, account: Account) -> Ticket:
    sentence = f"{account} is {account.get_status_display().lower()}. Start it first."
    return tickets.settle(ticket, TicketState.FAILED, sentence)


def send(ticket_id: str) -> None:
    """Send a test, or come back for it.

    1. Take the account's lease, ahead of the next pump, or look again in a second.
    2. Take a permit for every part, or come back when the limiter says so.
    3. Send the parts in order and write each into the ledger.
    4. Say what became of it, and let the next pump in.
    """
    ticket = tickets.find(ticket_id)
    if ticket is None or ticket.over:
        return
    if time.time() > ticket.asked_at + PATIENCE:
        tickets.settle(ticket, TicketState.FAILED, "Its account was busy for too long. Try again later.")
        return
    lease = queues.take_lease(ticket.account_id, ahead=True)
    if lease is None:
        _come_back(ticket, LOOK_AGAIN)
        return
    try:
        _with_lease(ticket, lease)
    finally:
        queues.end_shift(lease, Rest.soon())
        connection.close()


def _with_lease(ticket: Ticket, lease: Lease) -> None:
    account = Account.objects.get(pk=ticket.account_id)
    if account.status != Account.Status.ACTIVE:
        _refuse(ticket, account)  # stopped since it was asked for
        return
    try:
        transport = wire().transport(account.transport, account.credentials)
    except (TransportError, UnreadableSecretError) as error:
        tickets.settle(ticket, TicketState.FAILED, str(error))
        return
    permits = Permits(account, lease, ticket.action)
    if never := permits.why_never(len(ticket.parts)):
        tickets.settle(ticket, TicketState.FAILED, never)
        return
    answer = permits.take(cost=len(ticket.parts), error_rate=0.0, in_hand={}, in_the_air=0)
    match answer:
        case Granted(units=(unit, *others)):
            permits.give_back(permit for other in others for permit in other.permits)
            _with_permits(ticket, _Sending(account, lease, transport, permits), unit)
            permits.report()
        case Granted():
            raise AssertionError("The limiter granted nothing.")
        case Wait(until_ms=until_ms, reason=reason, now_ms=now_ms):
            _wait(ticket, (until_ms - now_ms) / 1000, reason)
        case LeaseLost() | Away():
            _come_back(ticket, LOOK_AGAIN)
        case _:
            assert_never(answer)


def _wait(ticket: Ticket, seconds: float, reason: WaitReason) -> None:
    if seconds <= LONGEST_WAIT:
        _come_back(ticket, seconds)
        return
    until = datetime.fromtimestamp(time.time() + seconds, UTC)
    tickets.settle(
        ticket,
        TicketState.FAILED,
        f"Nothing was sent: {WAIT_WORDS[reason].lower()} until {until:%Y-%m-%d %H:%M} UTC.",
    )


def _with_permits(ticket: Ticket, sending: "_Sending", unit: Unit) -> None:
    if not tickets.first_time(ticket):
        sending.permits.give_back(unit.permits)
        tickets.settle(ticket, TicketState.UNKNOWN, "It was interrupted: look whether it arrived.")
        return
    connection.close()  # back to the pool while the network is waited for
    outcome = wire().run(sending.deliver(ticket, unit))
    match outcome:
        case Sent():
            tickets.settle(ticket, TicketState.SENT, f"Sent to {ticket.address}.")
        case Unknown(reason=reason):
            tickets.settle(ticket, TicketState.UNKNOWN, f"It may have arrived: {reason}.")
        case _:
            tickets.settle(ticket, TicketState.FAILED, f"Not sent: {outcome.reason}.")


class _Sending:
    """One test on its way, under its account's lease."""

    def __init__(self, account: Account, lease: Lease, transport: Transport, permits: Permits) -> None:
        self.account = account
        self.lease = lease
        self.transport = transport
        self.permits = permits
        self.lost = False

    async def deliver(self, ticket: Ticket, unit: Unit) -> Outcome:
        """Every part in order, at its time; answers with the first that did not go through, else with the last."""
        parts, left = thaw([dict(part) for part in ticket.parts]), list(unit.permits)
        with wire().keeper.keeping(self.lease, lost=self._lose):
            try:
                handles = await self._upload(parts)
                if not isinstance(handles, Mapping):
                    return handles
                await asyncio.sleep(max(0.0, self.permits.moment(unit) - time.monotonic()))
                return await self._deliver_parts(ticket, parts, handles, left)
            except MissingVariableError as error:
                return Rejected(reason=str(error))
            finally:
                self.permits.give_back(left)

    async def _deliver_parts(
        self, ticket: Ticket, parts: Sequence[FrozenPart], handles: Mapping[str, str], left: list[str]
    ) -> Outcome:
        """Takes each used permit out of `left`."""
        letter = Letter(
            action=ticket.action, subject=ticket.subject, open_file=media.open_file, handles=handles
        )
        outcome: Outcome = Unknown(reason="nothing was sent")
        for number, part in enumerate(parts):
            if self.lost:
                return Unknown(reason="another worker took the account over")
            message = letter.message(part, address=ticket.address, values=ticket.values)
            outcome = await self._carry(Parcel(tag=number, message=message, key=f"{ticket.id}-{number}"))
            self.permits.settle(left.pop(0))
            if not isinstance(outcome, Sent):
                break
            if left:
                await asyncio.sleep(random.uniform(settings.PART_GAP_MIN_MS, settings.PART_GAP_MAX_MS) / 1000)
        return outcome

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
            uploaded = await self.transport.upload(media.as_media(part))
            if not isinstance(uploaded, Uploaded):
                return uploaded
            handles[part.sha256] = uploaded.handle
        return handles

    async def _carry(self, parcel: Parcel) -> Outcome:
        began, arrived = datetime.now(UTC), asyncio.get_running_loop().create_future()
        wire().launch(self.transport, [parcel], arrived.set_result)
        landed: Landed = await arrived
        await wire().clerk.ask(partial(self._write_down, landed, began))
        return landed.outcome

    def _write_down(self, landed: Landed, began: datetime) -> None:
        """The ledger's row, and what the answer means for the account."""
        verdict = retry.decide(landed.outcome, attempt=1, idempotent=False, knobs=knobs.retry_knobs())
        Attempt.objects.create(
            at=began,
            owner_id=self.account.owner_id,
            account=self.account,
            action=self.permits.action,
            part=landed.tag,
            outcome=name_of(landed.outcome),
            provider_id=storable(getattr(landed.outcome, "provider_id", ""), 255),
            error=storable(verdict.error, 500),
            took_ms=landed.took_ms,
        )
        match verdict.effect:
            case Effect.SLOW_DOWN | Effect.HOLD:
                seconds = verdict.retry_after or LOOK_AGAIN
                SlowDown(self.account, self.lease).hold(seconds, slower=verdict.effect is Effect.SLOW_DOWN)
                self.permits.hold(seconds)
            case Effect.FLAG:
                status = Account.Status.FLAGGED
                lifecycle.stop_account(self.account, status=status, reason=verdict.error)
            case _:
                pass


def _come_back(ticket: Ticket, seconds: float) -> None:
    app.send_task(TASK, (ticket.id,), queue=queues.queue_name(ticket.account_id), countdown=seconds or None)
