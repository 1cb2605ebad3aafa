"""Prepares a run for sending: uploads its media and makes the permits of its action."""

from collections.abc import Callable
from functools import partial

import structlog

from accounts.models.account import Action
from accounts.unsubscribe import links_from
from delivery import notifications
from delivery.engine import uploads
from delivery.engine.permits import Permits
from delivery.engine.recording import Ledgered
from delivery.engine.shift.consequences import Consequences
from delivery.engine.shift.outgoing import ServedRun
from delivery.engine.shift.state import LOOK_AGAIN, ShiftState
from delivery.engine.wakeups import Rest
from delivery.file_addresses.offered import addresses_for
from delivery.models import Run, RunTarget
from delivery.parts import FrozenPart, MessageBuilder, thaw
from delivery.states import TargetStatus, WaitReason
from delivery.transports.base import FileAddress

log = structlog.get_logger(__name__)


def _continues(run: Run) -> bool:
    """Decide whether the e-mails of a run may continue conversations."""
    return run.kind != Run.Kind.REMINDER and run.action == Action.EMAIL


def _threads(run: Run) -> dict[int, list[str]]:
    """Return the ids of the e-mails that each target's e-mail continues, by target."""
    rows = RunTarget.objects.filter(run=run, continues__isnull=False)
    return {pk: continues for pk, continues in rows.values_list("pk", "continues") if continues}


UNREADABLE_SECONDS = 15.0  # until a file that could not be read is tried again


class Preparation:
    """Makes runs ready to be sent by the account of one shift."""

    def __init__(self, state: ShiftState, consequences: Consequences) -> None:
        self.state = state
        self.consequences = consequences

    async def prepare(self, run_id: int) -> ServedRun | None:
        """Return the run with its media uploaded; None if that failed, and then the shift knows what to wait for."""
        state = self.state
        run = await state.batches.ask(partial(Run.objects.get, pk=run_id))
        handles = await self._handles(run)
        if isinstance(handles, uploads.NotReadable):
            await self._media_unreadable(run, handles)
            return None
        if isinstance(handles, uploads.NotUploaded):
            await self._media_trouble(run, handles)
            return None
        whose = Ledgered(run_id=run.pk, owner_id=run.owner_id, account_id=state.account.pk, action=run.action)
        builder = MessageBuilder(
            action=run.action,
            subject=run.subject,
            open_file=uploads.open_file,
            handles=handles,
            unsubscribe_url=links_from(state.account),
            threads=await state.batches.ask(partial(_threads, run)) if _continues(run) else {},
            address_of=await self._file_addresses(run),
        )
        served = ServedRun(
            run_id=run.pk,
            key=run.key,
            whose=whose,
            parts=thaw(run.parts),
            builder=builder,
            drip=run if run.drip else None,
            own_contents=run.has_own_contents,
            handles=handles,
        )
        if run.action not in state.permits:
            made = await state.batches.ask(partial(Permits, state.account, state.lease, run.action))
            state.permits[run.action] = made
        state.served[run.pk] = served
        state.kept_back.discard(run.pk)
        return served

    async def _handles(self, run: Run) -> dict[str, str] | uploads.NotReadable | uploads.NotUploaded:
        """Return the handles of the run's files. Those of items are uploaded when they are claimed."""
        if run.has_own_contents:
            return await self.state.batches.ask(partial(uploads.known, run.pk, self.state.account))
        return await uploads.handles(run, self.state.account, self.state.transport)

    async def _file_addresses(self, run: Run) -> Callable[[FrozenPart], FileAddress | None] | None:
        """Return what gives the files of a run their addresses; None where they go inside the messages."""
        state = self.state
        if state.files is None:
            ask = partial(addresses_for, state.account.pk, state.transport)
            state.files = await state.batches.ask(ask)
        if state.files is None:
            return None
        return state.files.of_run(run.pk, patience=state.transport.timeouts.upload)

    async def _media_unreadable(self, run: Run, trouble: uploads.NotReadable) -> None:
        """Wait until the file can be read here: another worker may see it, and somebody may fix the folder."""
        log.error("media_unreadable", run=run.pk, account=self.state.account.pk, file=trouble.filename)
        await self.state.batches.ask(partial(notifications.media_unreadable, run, trouble.sentence()))
        self.state.wait(Rest.after(UNREADABLE_SECONDS, WaitReason.MEDIA_UNREADABLE))

    async def _media_trouble(self, run: Run, trouble: uploads.NotUploaded) -> None:
        """Wait and try the upload again; pause the run once it is the file that the service does not take."""
        verdict = self.state.trouble.judge_upload(trouble.outcome, attempt=trouble.attempt)
        await self.consequences.for_account(verdict)
        if verdict.target is not TargetStatus.PENDING:
            await self.consequences.pause_run(run.pk, trouble.sentence())
        elif not self.state.over:
            wait = verdict.hold or verdict.retry_after or LOOK_AGAIN
            self.state.wait(Rest.after(wait, WaitReason.SLOWED))
