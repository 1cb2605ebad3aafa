"""The dashboard, the activity list, and what is shown when a request went wrong."""

from dataclasses import dataclass

from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.core.exceptions import RequestDataTooBig
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render

from accounts.models import Account, Recipient
from accounts.paging import page_of
from accounts.roles import visible
from activity.showcase import showcase
from delivery.models import Run
from delivery.states import RunStatus
from reminders.models import Reminder

ARCHIVED = "archived"
FILTERS = ("", "running", "paused", "success", "partial", "failed", "skipped", ARCHIVED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One of the three things to do before the first message leaves."""

    title: str
    text: str
    url: str
    done: bool


def first_steps(request: HttpRequest) -> list[Step]:
    return [
        Step(
            title="Connect an account",
            text="A WhatsApp number, a mailbox, a LinkedIn or a Matrix identity. Its limits keep it safe.",
            url="accounts:list",
            done=visible(Account.objects.filter(archived_at=None), request.user).exists(),
        ),
        Step(
            title="Add recipients",
            text="Groups come from the account by themselves; people from a CSV or XLSX file.",
            url="recipients:list",
            done=visible(Recipient.objects.filter(archived_at=None), request.user).exists(),
        ),
        Step(
            title="Schedule a reminder",
            text="Say what, to whom and when. Paceline tells you beforehand whether it fits the window.",
            url="reminders:list",
            done=visible(Reminder.objects.filter(archived_at=None), request.user).exists(),
        ),
    ]


@login_required
def dashboard(request: HttpRequest) -> HttpResponse:
    steps = first_steps(request)
    next_step = next((step for step in steps if not step.done), None)
    context: dict[str, object] = {"steps": steps, "next_step": next_step}
    if next_step is None:
        context |= overview(request)
    return render(request, "activity/dashboard.html", context)


def overview(request: HttpRequest) -> dict[str, object]:
    """What needs a decision, what runs now and what comes next."""
    runs = visible(Run.objects.filter(archived_at=None), request.user)
    accounts = visible(Account.objects.filter(archived_at=None), request.user)
    coming = visible(
        Reminder.objects.filter(status=Reminder.Status.SCHEDULED, archived_at=None), request.user
    )
    return {
        "paused": list(runs.filter(status=RunStatus.PAUSED).order_by("-id")[:5]),
        "running": list(runs.filter(status__in=[RunStatus.RUNNING, RunStatus.QUEUED]).order_by("-id")[:5]),
        "coming": list(coming.filter(next_fire_at__isnull=False).order_by("next_fire_at")[:5]),
        "stopped": list(
            accounts.exclude(status=Account.Status.ACTIVE).defer("credentials").order_by("name")[:5]
        ),
    }


@login_required
def activity(request: HttpRequest) -> HttpResponse:
    chosen = request.GET.get("status", "")
    runs = filtered(visible(Run.objects.all(), request.user), chosen)
    page = page_of(runs.select_related("owner").defer("parts"), request.GET, newest_first=True)
    return render(request, "activity/activity.html", {"page": page, "filters": FILTERS, "chosen": chosen})


def filtered(runs: QuerySet[Run], chosen: str) -> QuerySet[Run]:
    """The runs of one tab; an unknown one shows them all. Archived runs have a tab of their own."""
    if chosen == ARCHIVED:
        return runs.filter(archived_at__isnull=False)
    runs = runs.filter(archived_at=None)
    return runs.filter(status=chosen) if chosen in FILTERS and chosen else runs


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """A request that was refused before any view saw it; too large is a case of its own."""
    status = 413 if isinstance(exception, RequestDataTooBig) else 400
    return render(request, f"{status}.html", status=status)


def styleguide(request: HttpRequest) -> HttpResponse:
    """Every component in every state, for those who build pages."""
    if not settings.DEBUG:
        raise Http404
    return render(request, "activity/styleguide.html", showcase())
