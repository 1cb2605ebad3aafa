"""Runs as they are now, held until the transaction ends, and the refusal of what they are not ready for."""

from accounts.models import Account, User
from accounts.roles import require_touch
from delivery.models import Run, RunQuerySet
from delivery.states import RUN_MOVES, IllegalMoveError, RunStatus, may_move


class WrongStateError(IllegalMoveError):
    """The run, target or account is not in a state for this; the text says which state and what to do."""


def locked(run: Run, by: User | None = None) -> Run:
    """The run as it is now, held until this transaction ends; refuses those who may not touch it."""
    if by is not None:
        require_touch(run, by)
    return Run.objects.select_for_update(no_key=True).get(pk=run.pk)


def require(run: Run, new: RunStatus, otherwise: str, *, different: bool = False) -> None:
    if not may_move(RUN_MOVES, RunStatus(run.status), new) or (different and run.status == new):
        raise WrongStateError(f"Run {run.pk} is {run.status}. {otherwise}")


def open_runs(account: Account) -> RunQuerySet:
    """Its runs, as they are now, held until this transaction ends."""
    runs = Run.objects.filter(run_accounts__account=account, run_accounts__open=True)
    return runs.select_for_update(of=("self",), no_key=True).order_by("pk")
