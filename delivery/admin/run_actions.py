"""Actions on runs in the admin, by the same rules as on the pages."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from accounts.admin.actions import Button, Question, RowActions
from accounts.models import User
from activity.templatetags.paceline import run_pill
from delivery import run_actions
from delivery.models import Run, RunTarget
from delivery.run_actions import Action, Report
from delivery.states import OPEN_RUN


class RunActions(RowActions):
    """Adds the actions that suit a run to its page, and all of them to the list."""

    change_form_template = "admin/delivery/run/change_form.html"
    everything = "?archived=all"

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        actions: dict[str, Any] = super().get_actions(request)
        for action in run_actions.ACTIONS.values():
            actions[_name(action)] = (_handler(action), _name(action), f"{action.label}: the selected runs")
        actions["hand_over_runs"] = (_hand_over, "hand_over_runs", "Hand over: the selected run")
        return actions

    def buttons(self, row: Run) -> Iterable[Button]:
        for action in run_actions.suiting(row):
            yield Button(action=_name(action), label=action.label, gives_up=action.gives_up)
        if row.status in OPEN_RUN and row.canceled_at is None and row.pending:
            yield Button(action="hand_over_runs", label="Hand over")

    def act_on_runs(
        self, request: HttpRequest, action: Action[Run], runs: Sequence[Run]
    ) -> HttpResponse | None:
        """Do the action and show its words, or ask first."""
        if not isinstance(request.user, User):
            return self.back(request)
        found = run_actions.perform(action, runs, by=request.user, said=request.POST)
        if isinstance(found, run_actions.Question):
            return self.ask(request, _for_the_admin(found))
        show(self, request, found)
        return self.back(request)


def _hand_over(page: RunActions, request: HttpRequest, chosen: QuerySet[Run]) -> HttpResponse | None:
    """Open the page that shows both forecasts; it asks about one run at a time."""
    runs = list(chosen[:2])
    if len(runs) != 1:
        page.message_user(request, "Choose one run to hand over.", messages.WARNING)
        return page.back(request)
    return redirect("runs:hand_over", runs[0].pk)


def show(page: RowActions, request: HttpRequest, report: Report[Run] | Report[RunTarget]) -> None:
    """Show what an action did and what it refused."""
    if report.told:
        page.message_user(request, report.told, messages.SUCCESS)
    for refusal in report.refused:
        page.message_user(request, refusal, messages.WARNING)


def _for_the_admin(question: run_actions.Question) -> Question:
    return Question(
        action=_name(question.action),
        title=question.title,
        sentence=question.sentence,
        button=question.button,
        rows=[(run, run_pill(run)) for run in question.runs],
        gives_up=question.action.gives_up,
        phrase=question.phrase,
        mismatch=question.mismatch,
    )


def _name(action: Action[Run]) -> str:
    return f"{action.verb}_runs"


def _handler(
    action: Action[Run],
) -> Callable[[RunActions, HttpRequest, QuerySet[Run]], HttpResponse | None]:
    def act(page: RunActions, request: HttpRequest, chosen: QuerySet[Run]) -> HttpResponse | None:
        return page.act_on_runs(request, action, list(chosen))

    return act
