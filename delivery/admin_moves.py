"""Moves of runs and accounts in the admin: the same as on the pages, by the same rules, refusals as messages."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse

from accounts.models import Account, User
from accounts.roles import touchable, visible
from delivery import lifecycle
from delivery.models import Run
from delivery.moves import MOVES, Move, Question, move_all, question_of, suiting, told
from delivery.states import IllegalMoveError

if TYPE_CHECKING:
    _ModelAdmin = admin.ModelAdmin[Any]
else:
    _ModelAdmin = object

MOST_REFUSALS = 5


class RunMoves(_ModelAdmin):
    """Adds the moves to a run's page and to the list's actions."""

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.move_view)
        return [path("<int:pk>/move/", view, name="delivery_run_move"), *super().get_urls()]

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        actions: dict[str, Any] = super().get_actions(request)
        for move in MOVES.values():
            name = f"{move.verb}_runs"
            actions[name] = (_action(move), name, f"{move.label}: the selected runs")
        return actions

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        rows = Run.objects.filter(pk=object_id) if object_id.isdigit() else Run.objects.none()
        run = touchable(rows, request.user).first()
        offered = {"moves": suiting(run) if run else []}
        return super().change_view(request, object_id, form_url, (extra_context or {}) | offered)

    def move_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """One run, by a button of its page."""
        move = MOVES.get(request.POST.get("move", ""))
        if request.method != "POST" or move is None:
            raise Http404("There is no such move.")
        run = get_object_or_404(visible(Run.objects.all(), request.user), pk=pk)
        answer = self.move_runs(request, move, [run], address=request.path)
        return answer or redirect(reverse("admin:delivery_run_change", args=[pk]))

    def move_runs(
        self, request: HttpRequest, move: Move, runs: Iterable[Run], *, address: str
    ) -> HttpResponse | None:
        """Move them and tell; or ask first, where something is given up."""
        question = question_of(move, list(runs))
        if move.gives_up and not question.answered(request.POST):
            return self._ask(request, question, address)
        if isinstance(request.user, User):
            report = move_all(move, question.runs, by=request.user)
            if report.done:
                self.message_user(request, told(move, report), messages.SUCCESS)
            for refusal in report.refused[:MOST_REFUSALS]:
                self.message_user(request, refusal, messages.ERROR)
            if len(report.refused) > MOST_REFUSALS:
                more = len(report.refused) - MOST_REFUSALS
                self.message_user(request, f"{more:,} more could not be {move.done}.", messages.ERROR)
        return None

    def _ask(self, request: HttpRequest, question: Question, address: str) -> HttpResponse:
        context = {
            **self.admin_site.each_context(request),
            "title": f"{question.move.label}?",
            "move": question.move,
            "runs": question.runs,
            "pending": question.pending,
            "phrase": question.phrase,
            "mistyped": "typed" in request.POST,
            "address": address,
        }
        return TemplateResponse(request, "admin/delivery/run/confirm_move.html", context)


def _action(move: Move) -> Callable[[RunMoves, HttpRequest, QuerySet[Run]], HttpResponse | None]:
    def act(page: RunMoves, request: HttpRequest, chosen: QuerySet[Run]) -> HttpResponse | None:
        return page.move_runs(request, move, chosen, address=request.get_full_path())

    return act


class AccountMoves(_ModelAdmin):
    """Pause and resume accounts from their list."""

    @admin.action(description="Pause the selected accounts", permissions=["view"])
    def pause_accounts(self, request: HttpRequest, chosen: QuerySet[Account]) -> None:
        self._move(request, chosen, lifecycle.pause_account, "paused")

    @admin.action(description="Resume the selected accounts", permissions=["view"])
    def resume_accounts(self, request: HttpRequest, chosen: QuerySet[Account]) -> None:
        self._move(request, chosen, lifecycle.start_account, "active again")

    def _move(
        self, request: HttpRequest, chosen: QuerySet[Account], move: Callable[..., Account], done: str
    ) -> None:
        for account in chosen:
            try:
                move(account, by=request.user)
            except (IllegalMoveError, PermissionDenied) as error:
                self.message_user(request, str(error), messages.ERROR)
            else:
                self.message_user(request, f"{account} is {done}.", messages.SUCCESS)
