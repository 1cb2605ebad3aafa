"""Moves of runs from the lists: one by its own button, those that are ticked, or all that a filter finds.

More than one are moved after their count was shown, and then exactly those: who confirms sends their numbers.
"""

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST

from accounts.models import User
from accounts.roles import touchable, visible
from activity.filters import RunFilters
from delivery.models import Run
from delivery.moves import MOVES, Move, move_all, question_of, told

MOST = 500  # moved at once; for the rest it is pressed again. Django takes a thousand fields of a form.
MOST_REFUSALS = 5


@login_required
@require_POST
def move(request: HttpRequest) -> HttpResponse:
    """`one=resume 12` is the button of a row; `move=archive` with `run=3&run=17` is for those ticked.

    `move=archive` with `all=1` is for all that the filter in `matching` finds and that can be archived.
    """
    if not isinstance(request.user, User):
        raise Http404
    said, wanted = request.POST, _wanted(request.POST)
    runs = _all_of(wanted, said, request.user) if "all" in said else _ticked(said, request.user)
    if not runs:
        messages.warning(request, _nothing(wanted, said))
        return redirect(_back(request))
    question = question_of(wanted, runs)
    if (wanted.gives_up or len(runs) > 1) and not question.answered(said):
        context = {
            "question": question,
            "move": wanted,
            "runs": runs,
            "back": _back(request),
            "full": len(runs) == MOST,
            "mistyped": "typed" in said,
        }
        return render(request, "activity/confirm_move.html", context)
    _do(request, wanted, runs, request.user)
    return redirect(_back(request))


def matching(filters: RunFilters, status: str, user: User) -> QuerySet[Run]:
    """All runs that the filters find and that the person may move, the newest first."""
    return filters.runs(touchable(Run.objects.order_by("-pk"), user), status)


def _wanted(said: QueryDict) -> Move:
    wanted = MOVES.get(said.get("one", "").partition(" ")[0] or said.get("move", ""))
    if wanted is None:
        raise Http404("There is no such move.")
    return wanted


def _all_of(wanted: Move, said: QueryDict, user: User) -> list[Run]:
    address = QueryDict(said.get("matching", ""))
    rows = matching(RunFilters(address, user=user), address.get("status", ""), user)
    fitting = rows.filter(status__in=wanted.offered).defer("parts")
    return [run for run in fitting[:MOST] if wanted.suits(run)]


def _ticked(said: QueryDict, user: User) -> list[Run]:
    one = said.get("one", "").partition(" ")[2]
    words = [one] if one else said.getlist("run")[:MOST]
    ids = [int(word) for word in words if word.isascii() and word.isdigit() and len(word) < 19]
    return list(visible(Run.objects.filter(pk__in=ids), user).order_by("-pk"))


def _nothing(wanted: Move, said: QueryDict) -> str:
    if "all" in said:
        return f"None of the runs that match can be {wanted.done} as they stand."
    return "No run was chosen. Tick the runs that you mean, then press the button again."


def _do(request: HttpRequest, wanted: Move, runs: list[Run], by: User) -> None:
    report = move_all(wanted, runs, by=by)
    if report.done:
        messages.success(request, told(wanted, report))
    for refusal in report.refused[:MOST_REFUSALS]:
        messages.error(request, refusal)
    if len(report.refused) > MOST_REFUSALS:
        messages.error(request, f"{len(report.refused) - MOST_REFUSALS:,} more could not be {wanted.done}.")


def _back(request: HttpRequest) -> str:
    """Where the button was pressed."""
    asked = request.POST.get("next", "")
    return asked if url_has_allowed_host_and_scheme(asked, allowed_hosts=None) else "activity:list"
