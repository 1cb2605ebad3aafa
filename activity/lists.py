"""The lists of runs and of attempts."""

from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from accounts.models import User
from accounts.paging import page_of
from accounts.roles import touchable, visible
from activity.filters import OUTCOMES, STATUSES, ActivityFilters
from activity.models import Attempt
from delivery.models import Run
from delivery.moves import MOVES

# The address without them is that of the first page of everything.
PLACES = frozenset({"before", "after", "status", "outcome"})


@login_required
def run_list(request: HttpRequest) -> HttpResponse:
    filters = _filters(request)
    chosen = request.GET.get("status", "")
    rows = filters.runs(visible(Run.objects.all(), request.user), chosen)
    page = page_of(rows.select_related("owner").defer("parts"), request.GET, newest_first=True)
    on_page = Run.objects.filter(pk__in=[run.pk for run in page.rows])
    mine = set(touchable(on_page, request.user).values_list("pk", flat=True))
    context = {
        "page": page,
        "statuses": STATUSES,
        "chosen": chosen,
        "mine": mine,
        "moves": list(MOVES.values()),
        **_narrowed(request, filters),
    }
    return render(request, "activity/runs.html", context)


@login_required
def attempt_list(request: HttpRequest) -> HttpResponse:
    filters = _filters(request)
    chosen = request.GET.get("outcome", "")
    rows = visible(Attempt.objects.all(), request.user)
    if isinstance(request.user, User):
        rows = filters.attempts(rows, chosen, request.user)
    rows = rows.select_related("account", "run", "target__recipient").defer(
        "account__credentials", "run__parts"
    )
    page = page_of(rows, request.GET, by="at", newest_first=True)
    context = {"page": page, "outcomes": OUTCOMES, "chosen": chosen, **_narrowed(request, filters)}
    return render(request, "activity/attempts.html", context)


def _filters(request: HttpRequest) -> ActivityFilters:
    if not isinstance(request.user, User):
        raise TypeError("Only for people who are logged in.")
    return ActivityFilters(request.GET, user=request.user)


def _narrowed(request: HttpRequest, filters: ActivityFilters) -> dict[str, Any]:
    """Whether anything but the tab narrows the list."""
    return {"filters": filters, "narrowed": any(request.GET.get(name) for name in filters.fields)}
