"""The list of queues, one queue with its items, its settings, and what is done to many of its items at once."""

from collections.abc import Sequence
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import ValidationError
from django.db.models import QuerySet, Sum
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from accounts.access import posted, seen, touched, user_of
from accounts.models import Recipient, Role, User
from accounts.paging import page_of
from accounts.recipients.search import matching
from accounts.roles import may_touch, visible
from delivery.models import Run
from delivery.planning.forecasts import forecast
from delivery.planning.words import Forecast
from delivery.states import OPEN_RUN
from queues import approval, steering
from queues.actions import replan, withdraw
from queues.models import Item, Queue
from queues.pages.forms import QueueForm, ReplanForm
from queues.runs import runs_of
from queues.states import ItemState, condition, with_state
from reminders.drafts import NotPossibleError
from reminders.moments import instant_of

STEPS = {
    "pause": (steering.pause, "The queue was paused. Nothing is sent until you resume it."),
    "archive": (steering.archive, "The queue was archived."),
    "unarchive": (steering.unarchive, "The queue is back."),
}
MOST_FOUND = 200  # recipients of one search
MOST_RUNS = 10
MOST_FORESEEN = 1_000  # items of one run


@login_required
@require_GET
def queue_list(request: HttpRequest) -> HttpResponse:
    rows = visible(Queue.objects.all(), user_of(request)).select_related("owner")
    archived = request.GET.get("status") == "archived"
    search = request.GET.get("q", "").strip()
    rows = rows.filter(archived_at__isnull=not archived)
    if search:
        rows = rows.filter(name__icontains=search)
    page = page_of(rows, request.GET, newest_first=True)
    waiting = _waiting(page.rows)
    context = {
        "page": page,
        "rows": [(queue, waiting.get(queue.carrier_id, 0)) for queue in page.rows],
        "archived": archived,
        "search": search,
    }
    return render(request, "queues/list.html", context)


def _waiting(queues: Sequence[Queue]) -> dict[int, int]:
    """Return how many items of each queue are still to be sent, by its carrier."""
    found: dict[int, int] = {}
    runs = Run.objects.filter(reminder__in=[queue.carrier_id for queue in queues], status__in=OPEN_RUN)
    for reminder_id, pending, sending in runs.values_list("reminder_id", "pending", "sending"):
        found[reminder_id] = found.get(reminder_id, 0) + pending + sending
    return found


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def new(request: HttpRequest) -> HttpResponse:
    user = user_of(request)
    zone = user.zone or timezone.get_default_timezone_name()
    form = QueueForm(posted(request), instance=Queue(zone=zone), user=user)
    if form.is_valid():
        accounts = list(form.cleaned_data["senders"])
        try:
            queue = steering.create(accounts[0].owner, accounts=accounts, by=user, settings=form.settings)
        except (NotPossibleError, ValidationError) as error:
            form.add_error(None, error if isinstance(error, ValidationError) else str(error))
        else:
            return redirect("queues:page", queue.pk)
    return render(request, "queues/edit.html", {"form": form, "queue": None})


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def edit(request: HttpRequest, pk: int) -> HttpResponse:
    queue, user = touched(Queue.objects.select_related("owner"), request, pk, Role.SEND), user_of(request)
    form = QueueForm(posted(request), instance=queue, user=user)
    if form.is_valid():
        try:
            steering.change(
                queue, accounts=list(form.cleaned_data["senders"]), by=user, settings=form.settings
            )
        except (NotPossibleError, ValidationError) as error:
            form.add_error(None, error if isinstance(error, ValidationError) else str(error))
        else:
            messages.success(request, "The settings were saved.")
            return redirect("queues:page", pk)
    return render(request, "queues/edit.html", {"form": form, "queue": queue})


@login_required
@require_GET
def page(request: HttpRequest, pk: int) -> HttpResponse:
    queue = seen(Queue.objects.select_related("owner"), request, pk)
    chosen, search = request.GET.get("state", ""), request.GET.get("q", "").strip()
    rows = with_state(_found(queue, chosen, search, user_of(request)))
    rows = rows.select_related("recipient", "target__account", "target__content")
    open_runs = runs_of(queue).open().filter(canceled_at=None).order_by("-pk")[:MOST_RUNS]
    context = {
        "queue": queue,
        "page": page_of(rows.defer("target__account__credentials"), request.GET, newest_first=True),
        "states": list(ItemState),
        "totals": _totals(queue),
        "chosen": chosen if chosen in set(ItemState) else "",
        "search": search,
        "runs": [(run, _forecast(run)) for run in open_runs],
        "may_touch": may_touch(queue, request.user, Role.SEND),
        "replan": ReplanForm(),
        "approval": _approval(queue),
        "sources": queue.sources.defer("credentials").order_by("pk"),
    }
    return render(request, "queues/page.html", context)


def _approval(queue: Queue) -> dict[str, Any]:
    """Return whether a second person has to approve the queue, and the request that waits."""
    why = approval.why_needed(queue)
    return {
        "why": why,
        "approved": bool(why) and approval.is_approved(queue),
        "waits": approval.waiting(queue),
    }


def _forecast(run: Run) -> Forecast | None:
    """Return how a run goes on; of a long one, which takes a while to foresee, the page of the run says so."""
    return forecast(run, now=timezone.now()) if 0 < run.pending <= MOST_FORESEEN else None


def _totals(queue: Queue) -> list[tuple[str, int]]:
    """Return the numbers of items, from the counters of the queue's runs: no item is counted for it."""
    names = ("pending", "sending", "sent", "returned", "failed", "unconfirmed", "skipped")
    sums = runs_of(queue).aggregate(**{name: Sum(name, default=0) for name in names})
    return [
        ("To send", sums["pending"] + sums["sending"]),
        ("Sent", sums["sent"] - sums["returned"]),
        ("Returned", sums["returned"]),
        ("Failed", sums["failed"]),
        ("In doubt", sums["unconfirmed"]),
        ("Skipped or withdrawn", sums["skipped"]),
    ]


def _run_ids(queue: Queue) -> "QuerySet[Run, int]":
    return runs_of(queue).values_list("pk", flat=True)


def _found(queue: Queue, state: str, search: str, user: User) -> QuerySet[Item]:
    rows = Item.objects.filter(queue=queue)
    if state in set(ItemState):
        # Named by their runs, so that a state that few items have is found among a million of others.
        rows = rows.filter(condition(ItemState(state), timezone.now()), target__run__in=list(_run_ids(queue)))
    if not search:
        return rows
    people = matching(visible(Recipient.objects.all(), user), search)
    ids = list(people.values_list("pk", flat=True)[:MOST_FOUND])
    return rows.filter(own_id=search) | rows.filter(recipient__in=ids)


@login_required
@require_POST
def steer(request: HttpRequest, pk: int) -> HttpResponse:
    """Pause, resume, cancel, archive or unarchive a queue."""
    queue, user = touched(Queue.objects.all(), request, pk, Role.SEND), user_of(request)
    step = request.POST.get("do", "")
    try:
        if step == "resume":
            _, refusals = steering.resume(queue, by=user)
            messages.success(request, "The queue was resumed.")
            for refusal in refusals[:3]:
                messages.warning(request, refusal)
        elif step == "cancel" and request.POST.get("confirmed"):
            steering.cancel(queue, by=user)
            messages.success(request, "Everything that had not left was canceled.")
        elif step == "cancel":
            left = _waiting([queue]).get(queue.carrier_id, 0)
            return render(request, "queues/cancel.html", {"queue": queue, "left": left})
        elif step == "ask-approval":
            waits = steering.ask_approval(queue, by=user)
            messages.info(request, "Somebody else has to approve the queue now.")
            return redirect("approvals:page", waits.pk)
        elif step in STEPS:
            do, done = STEPS[step]
            do(queue, by=user)
            messages.success(request, done)
    except NotPossibleError as error:
        messages.error(request, str(error))
    return redirect("queues:page", pk)


@login_required
@require_POST
def change_many(request: HttpRequest, pk: int) -> HttpResponse:
    """Withdraw or re-plan the chosen items."""
    queue, user = touched(Queue.objects.all(), request, pk, Role.SEND), user_of(request)
    chosen = [int(each) for each in request.POST.getlist("item") if each.isdigit() and len(each) < 19]
    back = redirect(f"{request.path.removesuffix('items/')}?{request.GET.urlencode()}")
    if not chosen:
        messages.warning(request, "Choose some items first.")
        return back
    if request.POST.get("do") == "withdraw":
        done, verb = withdraw(queue, item_ids=chosen, by=user), "withdrawn"
    else:
        form = ReplanForm(request.POST)
        if not form.is_valid():
            messages.error(request, "Give a date and a time, or leave both empty.")
            return back
        at = form.cleaned_data["planned_at"]
        planned = instant_of(at, queue.zone) if at else None
        done, verb = replan(queue, item_ids=chosen, planned_at=planned, by=user), "planned again"
    if done.done:
        messages.success(request, f"{done.done:,} {'item was' if done.done == 1 else 'items were'} {verb}.")
    if done.begun:
        messages.warning(request, f"{done.begun:,} had begun or ended already, and stay as they are.")
    return back
