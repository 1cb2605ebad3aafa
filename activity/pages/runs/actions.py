"""The actions of a person on runs, from a run's page and from the lists. `delivery/run_actions` does them.

A button that is pressed twice does its work once: the second press finds the run in another state, and says so.
"""

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST

from accounts.access import local_address, touched, user_of
from accounts.models import Role, User
from accounts.roles import touchable, visible
from activity.pages.runs.filters import RunFilters
from delivery.models import Run, RunTarget
from delivery.run_actions import ACTIONS, TARGET_ACTIONS, Action, Question, Report, do_each, perform

MOST = 500  # runs in one request; the person repeats it for the rest. Django accepts a thousand fields of a form.


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def act(request: HttpRequest, pk: int, verb: str) -> HttpResponse:
    """Do one action to one run. An action that gives up messages also has a page that asks, at the same address."""
    action = ACTIONS[verb]
    if request.method != "POST" and not action.gives_up:
        return HttpResponseNotAllowed(["POST"])
    run = touched(Run.objects.select_related("reminder", "owner"), request, pk, Role.SEND)
    return _answer(request, action, [run], back=_next(request) or reverse("runs:page", args=[run.pk]))


@login_required
@require_POST
def act_on_target(request: HttpRequest, pk: int, target: int, verb: str) -> HttpResponse:
    """Do one action to one message of a run."""
    run = touched(Run.objects.select_related("reminder", "owner"), request, pk, Role.SEND)
    rows = RunTarget.objects.filter(run=run).select_related("run", "recipient", "account")
    found = get_object_or_404(rows, pk=target)
    _show(request, do_each(TARGET_ACTIONS[verb], [found], by=user_of(request)))
    return redirect(_next(request) or reverse("runs:page", args=[run.pk]))


@login_required
@require_POST
def act_on_many(request: HttpRequest) -> HttpResponse:
    """Do one action to the runs that a list names.

    1. `one=resume 12` is the button of a row.
    2. `do=archive` with `run=3&run=17` is for the ticked rows.
    3. `do=archive` with `all=1` is for all runs that the filter in `matching` finds and that can be archived.

    A question lists the numbers of its runs, so that exactly the runs that were shown are changed.
    """
    user, said, action = user_of(request), request.POST, _action(request.POST)
    runs = _all_of(action, said, user) if "all" in said else _ticked(said, user)
    back = _next(request) or reverse("activity:list")
    if runs:
        return _answer(request, action, runs, back=back)
    messages.warning(request, _nothing(action, said))
    return redirect(back)


def matching(filters: RunFilters, status: str, user: User) -> QuerySet[Run]:
    """Return all runs that the filters find and that the person may change, the newest first."""
    return filters.runs(touchable(Run.objects.order_by("-pk"), user, Role.SEND), status)


def _answer(request: HttpRequest, action: Action[Run], runs: list[Run], *, back: str) -> HttpResponse:
    """Do the action, show its words and go back; or show the question first."""
    found = perform(action, runs, by=user_of(request), said=request.POST)
    if isinstance(found, Question):
        context = {
            "question": found,
            "back": back,
            "full": len(runs) == MOST,
            "typed": request.POST.get("typed", ""),
            "mistyped": "typed" in request.POST,
        }
        return render(request, "runs/confirm.html", context)
    _show(request, found)
    return redirect(back)


def _show(request: HttpRequest, report: Report[Run] | Report[RunTarget]) -> None:
    if report.told:
        messages.success(request, report.told)
    for refusal in report.refused:
        messages.warning(request, refusal)


def _action(said: QueryDict) -> Action[Run]:
    action = ACTIONS.get(said.get("one", "").partition(" ")[0] or said.get("do", ""))
    if action is None:
        raise Http404("There is no such action.")
    return action


def _all_of(action: Action[Run], said: QueryDict, user: User) -> list[Run]:
    address = QueryDict(said.get("matching", ""))
    rows = matching(RunFilters(address, user=user), address.get("status", ""), user)
    fitting = rows.filter(status__in=action.offered).defer("parts")
    return [run for run in fitting[:MOST] if action.suits(run)]


def _ticked(said: QueryDict, user: User) -> list[Run]:
    one = said.get("one", "").partition(" ")[2]
    words = [one] if one else said.getlist("run")[:MOST]
    ids = [int(word) for word in words if word.isascii() and word.isdigit() and len(word) < 19]
    return list(visible(Run.objects.filter(pk__in=ids), user).order_by("-pk"))


def _nothing(action: Action[Run], said: QueryDict) -> str:
    if "all" in said:
        return f"None of these runs can be {action.done} now."
    return "No run was chosen. Tick the runs, then press the button again."


def _next(request: HttpRequest) -> str:
    """Return the local address of the page where the button was pressed, if the form names one."""
    return local_address(request.POST.get("next", ""))
