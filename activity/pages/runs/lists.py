"""The pages that list runs and attempts."""

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from accounts.access import user_of
from accounts.models import Role
from accounts.paging import page_of
from accounts.roles import touchable, visible
from activity.models import Attempt
from activity.pages.runs.actions import MOST, matching
from activity.pages.runs.filters import (
    ARCHIVED,
    OUTCOMES,
    STATUSES,
    ActivityFilters,
    AttemptFilters,
    RunFilters,
)
from delivery.models import Run
from delivery.run_actions import ACTIONS


@login_required
def run_list(request: HttpRequest) -> HttpResponse:
    person = user_of(request)
    filters = RunFilters(request.GET, user=person)
    chosen = request.GET.get("status", "")
    rows = filters.runs(visible(Run.objects.all(), person), chosen)
    page = page_of(rows.select_related("owner").defer("parts"), request.GET, newest_first=True)
    on_page = Run.objects.filter(pk__in=[run.pk for run in page.rows])
    mine = set(touchable(on_page, person, Role.SEND).values_list("pk", flat=True))
    absent = "archive" if chosen == ARCHIVED else "unarchive"
    context = {
        "page": page,
        "statuses": STATUSES,
        "chosen": chosen,
        "mine": mine,
        "actions": [action for action in ACTIONS.values() if action.verb not in {absent, "undo"}],
        "resume": ACTIONS["resume"],
        "matching": matching(filters, chosen, person)[: MOST + 1].count() if mine else 0,
        "most": MOST,
        "filters": filters,
        "narrowed": _narrowed(request, filters),
    }
    return render(request, "runs/list.html", context)


@login_required
def attempt_list(request: HttpRequest) -> HttpResponse:
    person = user_of(request)
    filters = AttemptFilters(request.GET, user=person)
    chosen = request.GET.get("outcome", "")
    rows = filters.attempts(visible(Attempt.objects.all(), person), chosen, person)
    rows = rows.select_related("account", "run", "target__recipient").defer(
        "account__credentials", "run__parts"
    )
    context = {
        "page": page_of(rows, request.GET, by="at", newest_first=True),
        "outcomes": OUTCOMES,
        "chosen": chosen,
        "filters": filters,
        "narrowed": _narrowed(request, filters),
    }
    return render(request, "activity/attempts.html", context)


def _narrowed(request: HttpRequest, filters: ActivityFilters) -> bool:
    """Return whether a filter is used besides the tab."""
    return any(request.GET.get(name) for name in filters.fields)
