"""What a person can do to runs, for the pages and the admin: one by one, each refusal told and none in the way."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from django.core.exceptions import PermissionDenied

from accounts.models import User
from delivery import lifecycle
from delivery.models import Run
from delivery.states import SETTLED_RUN, IllegalMoveError, PauseReason, RunStatus

OPEN = frozenset(RunStatus) - SETTLED_RUN
TYPED_ABOVE = 100  # targets; whoever gives up more than this types what they do


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """One thing to do, in the words of its button, and the states in which it is offered."""

    verb: str
    label: str
    done: str
    icon: str
    offered: frozenset[RunStatus]
    make: Callable[..., Run]
    gives_up: bool = False  # what is pending is lost: ask first

    def suits(self, run: Run) -> bool:
        fits = run.status in self.offered and (run.canceled_at is None or self.verb != "resume")
        if self.verb == "retry":
            return fits and run.failed > 0
        if self.verb == "pause":
            return fits and (run.status != RunStatus.PAUSED or run.goes_on_by_itself)
        return fits and (self.verb != "archive" or run.archived_at is None)


_MOVES = (
    Move(
        verb="resume",
        label="Resume",
        done="resumed",
        icon="play",
        offered=frozenset({RunStatus.PAUSED}),
        make=lifecycle.resume,
    ),
    Move(
        verb="pause",
        label="Pause",
        done="paused",
        icon="paused",
        offered=frozenset({RunStatus.QUEUED, RunStatus.RUNNING, RunStatus.PAUSED}),
        make=partial(lifecycle.pause, reason=PauseReason.OPERATOR),
    ),
    Move(
        verb="retry",
        label="Retry failed",
        done="queued again",
        icon="retry",
        offered=frozenset({RunStatus.PARTIAL, RunStatus.FAILED}),
        make=lifecycle.retry_failed,
    ),
    Move(
        verb="cancel",
        label="Cancel run",
        done="canceled",
        icon="canceled",
        offered=OPEN,
        make=lifecycle.cancel,
        gives_up=True,
    ),
    Move(
        verb="archive",
        label="Archive",
        done="archived",
        icon="archived",
        offered=SETTLED_RUN,
        make=lifecycle.archive,
    ),
)

MOVES: Mapping[str, Move] = {move.verb: move for move in _MOVES}


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What became of it: the runs that moved, and a sentence for each that did not."""

    done: list[Run]
    refused: list[str]


def move_all(move: Move, runs: Iterable[Run], *, by: User) -> Report:
    """Each run in a transaction of its own."""
    done, refused = [], []
    for run in runs:
        try:
            done.append(move.make(run, by=by))
        except (IllegalMoveError, PermissionDenied) as error:
            refused.append(str(error))
    return Report(done=done, refused=refused)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is about to happen, in numbers, for a person to confirm; who gives up many targets types what they do."""

    move: Move
    runs: Sequence[Run]
    fitting: Sequence[Run]  # those that can be moved as they stand
    pending: int  # messages that are given up
    phrase: str

    def answered(self, said: Mapping[str, str]) -> bool:
        typed = said.get("typed", "").strip().casefold()
        return "confirmed" in said and typed == self.phrase.strip().casefold()


def question_of(move: Move, runs: Sequence[Run]) -> Question:
    fitting = [run for run in runs if move.suits(run)]
    pending = sum(run.pending + run.sending for run in fitting) if move.gives_up else 0
    phrase = runs[0].name if len(runs) == 1 else f"{move.verb} {len(runs)} runs"
    return Question(
        move=move,
        runs=runs,
        fitting=fitting,
        pending=pending,
        phrase=phrase if pending > TYPED_ABOVE else "",
    )


def suiting(run: Run) -> list[Move]:
    """What can be done to a run as it stands."""
    return [move for move in _MOVES if move.suits(run)]


def told(move: Move, report: Report) -> str:
    """What was done, in words."""
    if len(report.done) == 1:
        return f"“{report.done[0].name}” was {move.done}."
    return f"{len(report.done):,} runs were {move.done}."
