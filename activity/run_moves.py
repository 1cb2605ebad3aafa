"""Moves of runs from the lists: one by its own button, or those that are chosen, after the count was shown."""

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST

from accounts.models import User
from accounts.roles import visible
from delivery.models import Run
from delivery.moves import MOVES, Move, move_all, question_of, told

MOST = 200
MOST_REFUSALS = 5


@login_required
@require_POST
def move(request: HttpRequest) -> HttpResponse:
    """`one=resume 12` is the button of a row; `move=archive` with `run=3&run=17` is for those chosen."""
    if not isinstance(request.user, User):
        raise Http404
    wanted, ids = _asked(request.POST)
    runs = list(visible(Run.objects.filter(pk__in=ids), request.user).order_by("-pk"))
    if not runs:
        messages.warning(
            request, "No run was chosen. Tick the runs that you mean, then press the button again."
        )
        return redirect(_back(request))
    question = question_of(wanted, runs)
    if (wanted.gives_up or len(runs) > 1) and not question.answered(request.POST):
        context = {
            "question": question,
            "move": wanted,
            "runs": runs,
            "back": _back(request),
            "mistyped": "typed" in request.POST,
        }
        return render(request, "activity/confirm_move.html", context)
    report = move_all(wanted, runs, by=request.user)
    if report.done:
        messages.success(request, told(wanted, report))
    for refusal in report.refused[:MOST_REFUSALS]:
        messages.error(request, refusal)
    if len(report.refused) > MOST_REFUSALS:
        messages.error(request, f"{len(report.refused) - MOST_REFUSALS:,} more could not be {wanted.done}.")
    return redirect(_back(request))


def _asked(said: QueryDict) -> tuple[Move, list[int]]:
    verb, _, one = said.get("one", "").partition(" ")
    words = [one] if verb else said.getlist("run")[:MOST]
    wanted = MOVES.get(verb or said.get("move", ""))
    if wanted is None:
        raise Http404("There is no such move.")
    return wanted, [int(word) for word in words if word.isascii() and word.isdigit() and len(word) < 19]


def _back(request: HttpRequest) -> str:
    """Where the button was pressed."""
    asked = request.POST.get("next", "")
    return asked if url_has_allowed_host_and_scheme(asked, allowed_hosts=None) else "activity:list"
