"""The state that the parts of a shift share: account, agenda, messages in flight, and the reason to wait."""

import asyncio
import time
from datetime import UTC, datetime
from functools import partial

from django.conf import settings

from accounts.models import Account
from delivery import lifecycle
from delivery.engine import claims
from delivery.engine.lease import Lease
from delivery.engine.loop import send_loop
from delivery.engine.permits import Permits
from delivery.engine.shift.agenda import Agenda
from delivery.engine.shift.alarm import EXACT_MS, STEP_MS
from delivery.engine.shift.outgoing import Outgoing, ServedRun
from delivery.engine.trouble import AccountTrouble
from delivery.engine.wakeups import LONGEST_NAP, Rest
from delivery.file_addresses.offered import Addresses
from delivery.transports.base import Transport

LOOK_AGAIN = 1.0  # seconds until a run of which nothing could be claimed is looked at again


class ShiftState:
    """The state of one shift. It also gives back the messages that the shift does not send.

    The refill runs beside the round, and both change this object. All of them run on one event loop, so nothing
    changes between two `await`s.
    """

    def __init__(self, account: Account, lease: Lease, transport: Transport) -> None:
        self.account = account
        self.lease = lease
        self.transport = transport
        self.trouble = AccountTrouble(account, lease)
        self.permits: dict[str, Permits] = {}  # each action has limits of its own
        self.served: dict[int, ServedRun] = {}
        self.files: Addresses | None = None  # where the service fetches the files of messages
        self.kept_back: set[int] = (
            set()
        )  # runs with a message that was kept back: their files are checked again
        self.agenda = Agenda(concurrency=account.group_concurrency or int(settings.GROUP_CONCURRENCY))
        self.in_flight: dict[int, Outgoing] = {}
        self.wake = asyncio.Event()  # something landed or was checked, or the lease is lost
        self.rest: Rest | None = None
        self.leaving = False  # nothing more is due for a while
        self.over = False  # and nothing more may begin
        self.again = False  # a target wants another attempt
        self.lost = False  # another pump has the account
        self.ending = False  # what the shift read at its start is old, or a person waits for the account
        self.moved = False  # its runs are others than those it knows
        self.slowed: dict[int, bool] = {}  # whether the permits of a run were taken for the pace of errors
        self.batches, self.alarm = send_loop().batches, send_loop().alarm

    def permits_of(self, run: ServedRun) -> Permits:
        return self.permits[run.whose.action]

    def tries_out(self) -> bool:
        """Decide whether a message under way tries out an account in trouble: only one at a time does."""
        return self.trouble.present and bool(self.in_flight or self.agenda)

    async def woken(self, *, within: float) -> None:
        """Wait until something happens, up to `within` seconds.

        An alarm costs less than a timeout, which cancels its task: shifts wait several times for each message.
        """
        step = STEP_MS if self.agenda.is_paced() else EXACT_MS
        call = self.alarm.at(time.monotonic() + within, self.wake.set, step_ms=step)
        try:
            await self.wake.wait()
        finally:
            call.cancel()

    def lose_lease(self) -> None:
        self.lost = True
        self.wake.set()

    def end_soon(self) -> None:
        self.ending = True
        self.wake.set()

    def look_for_work(self) -> None:
        self.moved = True
        self.wake.set()

    async def choose_again(self) -> None:
        """Give back what has not begun: another run may go first now, or none may go on."""
        self.moved = False
        await self.drop_agenda()
        if not self.over:
            self.leaving, self.rest = False, None

    def wait(self, rest: Rest) -> None:
        """Wait in place if the wait is short; else the shift ends once everything that has begun is through."""
        if self.over:
            return  # why it ended stays
        self.rest = rest
        self.leaving = rest.until is None or rest.seconds() > LONGEST_NAP

    async def wind_down(self, rest: Rest) -> None:
        """Begin nothing more; messages in flight still land."""
        self.over = True
        self.rest = rest
        await self.drop_agenda()

    async def drop_agenda(self) -> None:
        await self.give_back(self.agenda.drop())

    async def give_back(self, messages: list[Outgoing], *, begun: bool = False) -> None:
        """Give back messages that did not leave: their targets become pending, their permits go to the limiter."""
        for run_id in {outgoing.run.run_id for outgoing in messages}:
            targets = [outgoing.target_id for outgoing in messages if outgoing.run.run_id == run_id]
            await self.batches.ask_about(run_id, partial(_let_go, run_id, targets, self.lease, begun=begun))
        self.agenda.leave(outgoing.target_id for outgoing in messages)
        for outgoing in messages:
            self.permits_of(outgoing.run).give_back(outgoing.held)
            outgoing.right = ""


def _let_go(run_id: int, targets: list[int], lease: Lease, *, begun: bool) -> None:
    now, account_id = datetime.now(UTC), lease.account_id
    if claims.let_go(targets, fence=lease.fence, now=now, begun=begun, account_id=account_id):
        lifecycle.settle(run_id)
