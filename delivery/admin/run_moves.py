"""Moves of runs in the admin: the same as on the pages, by the same rules."""

from collections.abc import Callable, Iterable
from typing import Any

from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse

from accounts.admin.archiving import Archiving
from accounts.admin.moves import Button, Question
from accounts.models import User
from activity.templatetags.paceline import run_pill
from delivery import moves
from delivery.models import Run


class RunMoves(Archiving):
    """Adds what suits a run to its page, and all of it to the list's actions."""

    change_form_template = "admin/delivery/run/change_form.html"

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        actions: dict[str, Any] = super().get_actions(request)
        for move in moves.MOVES.values():
            actions[_name(move)] = (_action(move), _name(move), f"{move.label}: the selected runs")
        return actions

    def buttons(self, row: Run) -> Iterable[Button]:
        for move in moves.suiting(row):
            yield Button(action=_name(move), label=move.label, gives_up=move.gives_up)
        if row.archived_at:
            yield Button(action="unarchive", label="Bring it back")

    def move_runs(self, request: HttpRequest, move: moves.Move, runs: list[Run]) -> HttpResponse | None:
        """Move them and tell; or ask first, where something is given up."""
        question = moves.question_of(move, runs)
        if move.gives_up and not question.answered(request.POST):
            return self.ask(request, _in_words(question))
        if isinstance(request.user, User):
            report = moves.move_all(move, runs, by=request.user)
            if report.done:
                self.message_user(request, moves.told(move, report), messages.SUCCESS)
            self.refuse(request, report.refused)
        return self.back(request)


def _in_words(question: moves.Question) -> Question:
    move, runs, plural = question.move, len(question.runs), "" if question.pending == 1 else "s"
    return Question(
        action=_name(move),
        title=f"{move.label}?" if runs == 1 else f"{move.label}: {runs:,} runs?",
        sentence=f"{question.pending:,} pending message{plural} will not be sent. What was sent stays sent. "
        "This cannot be undone.",
        button=move.label if runs == 1 else f"{move.label} ({runs:,})",
        rows=[(run, run_pill(run)) for run in question.runs],
        gives_up=True,
        phrase=question.phrase,
    )


def _name(move: moves.Move) -> str:
    return f"{move.verb}_runs"


def _action(move: moves.Move) -> Callable[[RunMoves, HttpRequest, QuerySet[Run]], HttpResponse | None]:
    def act(page: RunMoves, request: HttpRequest, chosen: QuerySet[Run]) -> HttpResponse | None:
        return page.move_runs(request, move, list(chosen))

    return act
