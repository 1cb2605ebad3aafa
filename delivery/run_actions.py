"""The actions of people on runs and their messages.

Every page, list, admin action, notification button and command calls `perform` and shows the text it returns; nothing
else does what people do to runs. `delivery/lifecycle` does the work under a lock and refuses what the state or the
rights do not allow; its sentence is the refusal that the person reads.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar
from zoneinfo import ZoneInfo

from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.utils import timezone

from accounts.models import Role, User
from accounts.roles import touchable
from activity.components.times import until
from audit.record import differing, record, values_of
from delivery import lifecycle
from delivery.conf import ASKS_ABOVE
from delivery.lifecycle.causes import Cause
from delivery.models import Run, RunTarget
from delivery.states import OPEN_RUN, SETTLED_RUN, IllegalMoveError, PauseReason, RunStatus, TargetStatus

REFUSALS_SHOWN = 5
SHOWN = ("status", "pause_reason", "pending", "failed", "unconfirmed", "archived_at", "canceled_at")
PAUSED_BY_A_PERSON = partial(lifecycle.pause, reason=PauseReason.OPERATOR)

Row = TypeVar("Row", Run, RunTarget)


@dataclass(frozen=True, slots=True, kw_only=True)
class Action(Generic[Row]):
    """One thing that a person can do to a row: its words, the states in which it is offered, and its function."""

    verb: str
    label: str  # on its button
    done: str  # completes "The run was ..."
    icon: str
    offered: frozenset[str]
    do: Callable[..., Run]
    when: Callable[[Row], bool] = lambda _: True  # what must be true besides the state
    gives_up: bool = False  # pending messages are not sent: ask first
    # A second sentence, from the rows as they were before, and from their runs as they are now.
    afterwards: Callable[[Sequence[Row], Sequence[Run]], str] = lambda _, __: ""

    def suits(self, row: Row) -> bool:
        """Decide whether the action is offered for a row in its present state."""
        return row.status in self.offered and self.when(row)


def _nothing_is_sent(runs: Sequence[Run], _: Sequence[Run]) -> str:
    return f"Nothing is sent until you resume {'it' if len(runs) == 1 else 'them'}."


def _messages_queued(runs: Sequence[Run], _: Sequence[Run]) -> str:
    failed = sum(run.failed for run in runs)
    return f"{_messages(failed)} will be sent again."


def _hours_waited_for(_: Sequence[Run], now: Sequence[Run]) -> str:
    return wait_words(now)


def wait_words(runs: Sequence[Run]) -> str:
    """Say until when runs wait for their delivery hours; nothing where they are sent at once."""
    waiting = [run for run in runs if run.status == RunStatus.QUEUED and run.opens_at is not None]
    if not waiting:
        return ""
    first = min(waiting, key=lambda run: run.opens_at or run.fired_at)
    at = until(first.opens_at or first.fired_at, ZoneInfo(first.zone), timezone.now())
    if len(runs) == 1:
        return f"It is queued until {at}, when its delivery hours begin."
    return f"{len(waiting):,} of them wait for their delivery hours, the first until {at}."


def _messages_given_up(runs: Sequence[Run], now: Sequence[Run]) -> str:
    unknown = sum(run.unconfirmed for run in now) - sum(run.unconfirmed for run in runs)
    said = f"{_messages(max(0, _pending(runs) - unknown))} will not be sent."
    return f"{said} {unknown:,} may have arrived: check the unconfirmed ones." if unknown > 0 else said


def _none_was_sent(_: Sequence[Run], __: Sequence[Run]) -> str:
    return "Nothing was sent."


_ACTIONS: tuple[Action[Run], ...] = (
    Action(
        verb="undo",
        label="Undo",
        done="taken back",
        icon="retry",
        offered=frozenset({RunStatus.QUEUED}),
        when=lambda run: run.may_be_undone,
        do=lifecycle.undo,
        afterwards=_none_was_sent,
    ),
    Action(
        verb="resume",
        label="Resume",
        done="resumed",
        icon="play",
        offered=frozenset({RunStatus.PAUSED}),
        when=lambda run: run.canceled_at is None,
        do=lifecycle.resume,
        afterwards=_hours_waited_for,
    ),
    Action(
        verb="pause",
        label="Pause",
        done="paused",
        icon="paused",
        offered=OPEN_RUN,
        when=lambda run: run.status != RunStatus.PAUSED or run.goes_on_by_itself,
        do=PAUSED_BY_A_PERSON,
        afterwards=_nothing_is_sent,
    ),
    Action(
        verb="retry",
        label="Retry failed",
        done="queued again",
        icon="retry",
        offered=frozenset({RunStatus.PARTIAL, RunStatus.FAILED}),
        when=lambda run: run.failed > 0 and run.details_removed_at is None,
        do=lifecycle.retry_failed,
        afterwards=_messages_queued,
    ),
    Action(
        verb="cancel",
        label="Cancel run",
        done="canceled",
        icon="canceled",
        offered=OPEN_RUN,
        when=lambda run: run.canceled_at is None,
        do=lifecycle.cancel,
        gives_up=True,
        afterwards=_messages_given_up,
    ),
    Action(
        verb="archive",
        label="Archive",
        done="archived",
        icon="archived",
        offered=SETTLED_RUN,
        when=lambda run: run.archived_at is None,
        do=lifecycle.archive,
    ),
    Action(
        verb="unarchive",
        label="Unarchive",
        done="unarchived",
        icon="archived",
        offered=SETTLED_RUN,
        when=lambda run: run.archived_at is not None,
        do=lifecycle.unarchive,
    ),
)

_TARGET_ACTIONS: tuple[Action[RunTarget], ...] = (
    Action(
        verb="confirm",
        label="Mark sent",
        done="marked as sent",
        icon="check",
        offered=frozenset({TargetStatus.UNCONFIRMED}),
        do=lifecycle.confirm,
    ),
    Action(
        verb="resend",
        label="Send again",
        done="queued again",
        icon="retry",
        offered=frozenset({TargetStatus.UNCONFIRMED}),
        do=lifecycle.resend,
    ),
)

# What a person decides about many messages of a run at once. Each function takes a `cause`.
_BATCHES: tuple[Action[Run], ...] = (
    Action(
        verb="confirm-all",
        label="Mark all sent",
        done="marked as sent",
        icon="check",
        offered=frozenset(RunStatus),
        when=lambda run: run.unconfirmed > 0 and run.details_removed_at is None,
        do=lifecycle.confirm_all,
    ),
    Action(
        verb="resend-all",
        label="Send all again",
        done="queued again",
        icon="retry",
        offered=frozenset(RunStatus),
        when=lambda run: run.unconfirmed > 0 and run.details_removed_at is None,
        do=lifecycle.resend_all,
    ),
    Action(
        verb="retry-all",
        label="Retry all",
        done="queued again",
        icon="retry",
        offered=frozenset({RunStatus.PARTIAL, RunStatus.FAILED}),
        when=lambda run: run.failed > 0 and run.details_removed_at is None,
        do=lifecycle.retry_failed,
    ),
)

ACTIONS: Mapping[str, Action[Run]] = {action.verb: action for action in _ACTIONS}
TARGET_ACTIONS: Mapping[str, Action[RunTarget]] = {action.verb: action for action in _TARGET_ACTIONS}
BATCHES: Mapping[str, Action[Run]] = {action.verb: action for action in _BATCHES}


@dataclass(frozen=True, slots=True, kw_only=True)
class Report(Generic[Row]):
    """The result of an action: the rows that changed, as they were before, and a refusal for each other row."""

    action: Action[Row]
    done: Sequence[Row]
    refusals: Sequence[str]
    results: Sequence[Run]  # the runs of those that changed, as they are now

    @property
    def told(self) -> str:
        """Return the sentence for the rows that changed, or nothing when none did."""
        if not self.done:
            return ""
        first = f"{_subject(self.done)} {self.action.done}."
        return f"{first} {self.action.afterwards(self.done, self.results)}".strip()

    @property
    def refused(self) -> list[str]:
        """Return the first refusals, and how many more there are."""
        shown = list(self.refusals[:REFUSALS_SHOWN])
        if more := len(self.refusals) - len(shown):
            shown.append(f"{more:,} more could not be {self.action.done}.")
        return shown


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """An action that waits for a confirmation: what will happen, in numbers, and the text to type."""

    action: Action[Run]
    runs: Sequence[Run]
    fitting: Sequence[Run]  # those that the action can change, for this person
    pending: int  # messages that are given up
    doubtful: int  # of these: may have arrived
    phrase: str  # to be typed, if any

    def answered(self, said: Mapping[str, str]) -> bool:
        """Decide whether the person confirmed; spaces around the typed text and capital letters do not matter."""
        return "confirmed" in said and _same(said.get("typed", ""), self.phrase)

    @property
    def title(self) -> str:
        name = self.runs[0].name if len(self.runs) == 1 else f"{len(self.runs):,} runs"
        return f"{self.action.label}: {name}?"

    @property
    def sentence(self) -> str:
        """Say who will not receive the message, or how many of the runs change."""
        said = [_reached(self.fitting, self.pending, self.doubtful)] if self.action.gives_up else []
        if len(self.fitting) < len(self.runs):
            said.append(f"{len(self.fitting):,} of {len(self.runs):,} runs can be {self.action.done}.")
            said.append("The others stay as they are.")
        elif not self.action.gives_up:
            said.append(f"All {len(self.runs):,} runs can be {self.action.done}.")
        if self.action.gives_up:
            said.append("This cannot be undone. To stop only for a while, pause instead.")
        return " ".join(said)

    @property
    def button(self) -> str:
        return self.action.label if len(self.runs) == 1 else f"{self.action.label} ({len(self.runs):,})"

    @property
    def back(self) -> str:
        return "Don't cancel" if self.action.gives_up else "Back"

    @property
    def mismatch(self) -> str:
        """Return the error for a text that is not the phrase."""
        return f"The {'name' if len(self.runs) == 1 else 'text'} does not match."


def perform(
    action: Action[Run], runs: Sequence[Run], *, by: User | None, said: Mapping[str, str]
) -> "Report[Run] | Question":
    """Do the action to each run, or return the question that must be confirmed first.

    The one rule of confirmation: an action asks when it gives up pending messages or changes more than one run. Above
    `ASKS_ABOVE` pending messages the name is typed. Nothing is asked where nothing can be done: the refusals say why.
    """
    question = question_of(action, runs, by=by)
    asks = question.fitting and (action.gives_up or len(runs) > 1)
    if asks and not question.answered(said):
        return question
    return do_each(action, runs, by=by)


def do_each(action: Action[Row], rows: Sequence[Row], *, by: User | None) -> Report[Row]:
    """Do the action to each row in a transaction of its own, so that one refusal does not stop the others."""
    done, refusals, results = [], [], []
    for row in rows:
        try:
            results.append(_recorded(action, row, by))
        except (IllegalMoveError, PermissionDenied) as error:
            refusals.append(str(error))
        else:
            done.append(row)
    return Report(action=action, done=done, refusals=refusals, results=results)


def decide(action: Action[Run], run: Run, *, cause: Cause | None, by: User | None) -> tuple[str, str]:
    """Decide about all messages of a run, or those of one cause; return what was done, or why it was refused."""
    before = {name: getattr(run, name) for name in ("failed", "unconfirmed")}
    try:
        after = _recorded(action, run, by, cause=cause)
    except (IllegalMoveError, PermissionDenied) as error:
        return "", str(error)
    moved = sum(max(0, before[name] - getattr(after, name)) for name in ("failed", "unconfirmed"))
    return f"{_messages(moved)} {'was' if moved == 1 else 'were'} {action.done}.", ""


def _recorded(action: Action[Row], row: Row, by: User | None, **more: Cause | None) -> Run:
    """Do the action to one row and record it, both or neither."""
    run = row if isinstance(row, Run) else row.run
    before = values_of(run, SHOWN)
    with transaction.atomic():
        after = action.do(row, by=by, **more)
        old, new = differing(before, values_of(after, SHOWN))
        if isinstance(row, RunTarget):
            new["target"] = row.pk
        record(f"run.{action.verb}", after, by=by, before=old, after=new)
    return after


def question_of(action: Action[Run], runs: Sequence[Run], *, by: User | None) -> Question:
    fitting = _allowed([run for run in runs if action.suits(run)], by)
    pending = _pending(fitting) if action.gives_up else 0
    phrase = runs[0].name if len(runs) == 1 else f"{action.verb} {len(runs)} runs"
    return Question(
        action=action,
        runs=runs,
        fitting=fitting,
        pending=pending,
        doubtful=_doubtful(fitting) if pending else 0,
        phrase=phrase if pending > ASKS_ABOVE else "",
    )


def suiting(run: Run) -> list[Action[Run]]:
    """Return the actions that are offered for a run in its present state."""
    return [action for action in _ACTIONS if action.suits(run)]


def _allowed(runs: list[Run], by: User | None) -> list[Run]:
    if by is None:
        return runs
    rows = Run.objects.filter(pk__in=[run.pk for run in runs])
    allowed = set(touchable(rows, by, Role.SEND).values_list("pk", flat=True))
    return [run for run in runs if run.pk in allowed]


def _pending(runs: Sequence[Run]) -> int:
    return sum(run.pending + run.sending for run in runs)


def _doubtful(runs: Sequence[Run]) -> int:
    """Count the messages of runs that may have arrived, and would be sent again with the same key."""
    pending = RunTarget.objects.filter(run__in=[run.pk for run in runs], status=TargetStatus.PENDING)
    return pending.filter(lifecycle.in_doubt()).count()


def _same(typed: str, phrase: str) -> bool:
    return typed.strip().casefold() == phrase.strip().casefold()


def _messages(count: int) -> str:
    return f"{count:,} message{'' if count == 1 else 's'}"


def _subject(rows: Sequence[Run] | Sequence[RunTarget]) -> str:
    """Return the subject of a sentence with its verb: “Rent is due” was, or 3 runs were."""
    first = rows[0]
    if len(rows) == 1:
        return f"“{first.name if isinstance(first, Run) else first.recipient}” was"
    return f"{len(rows):,} {'runs' if isinstance(first, Run) else 'messages'} were"


def _reached(runs: Sequence[Run], pending: int, doubtful: int) -> str:
    """Say how many received the message of a run, how many may have, and how many will not."""
    sent, expected = sum(run.sent for run in runs), sum(run.expected for run in runs)
    maybe = f" {doubtful:,} may have received it." if doubtful else ""
    rest = pending - doubtful
    others = f"The other {rest:,} will not." if sent + pending == expected else f"{rest:,} more will not."
    return f"{sent:,} of {expected:,} already received it.{maybe} {others}"
