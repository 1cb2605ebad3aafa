"""The page of follow-ups: the size of the queue, the numbers of the last days, and each follow-up."""

from datetime import timedelta

from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.db.models import Count, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_GET

from accounts.access import user_of
from accounts.models import Recipient
from accounts.paging import page_of
from accounts.recipients.search import matching
from accounts.roles import visible
from reminders.follow_ups import queue
from reminders.follow_ups.rules import Reason
from reminders.models import FollowUp

STATUSES = ("", *FollowUp.Status.values)
RECENT = timedelta(days=7)
MOST_FOUND = 200  # recipients of one search


@login_required
@require_GET
def follow_up_list(request: HttpRequest) -> HttpResponse:
    mine = visible(FollowUp.objects.all(), user_of(request))
    chosen, reason = request.GET.get("status", ""), request.GET.get("reason", "")
    search = request.GET.get("q", "").strip()
    rows = _found(_narrowed(mine, chosen, reason), request, search)
    rows = rows.select_related("recipient__owner", "step", "target__run").defer("target__run__parts")
    size, limits = max(queue.sizes(mine).values(), default=0), queue.limits()
    context = {
        "page": page_of(rows, request.GET, newest_first=True),
        "statuses": STATUSES,
        "chosen": chosen if chosen in STATUSES else "",
        "reasons": list(Reason),
        "reason": reason,
        "search": search,
        "size": size,
        "limits": limits,
        "most_attempts": settings.FOLLOW_UP_MAX_ATTEMPTS,
        "cooldown_hours": settings.FOLLOW_UP_COOLDOWN_HOURS,
        "pressing": size > limits.threshold,
        "waiting": _counts(mine, "urgency", status=FollowUp.Status.QUEUED),
        "removed": _counts(mine, "removed_reason", status=FollowUp.Status.REMOVED, recent=True),
        "sent": _recent(mine, FollowUp.Status.SENT).count(),
        "sending": mine.filter(status=FollowUp.Status.SENDING).count(),
    }
    return render(request, "reminders/follow_ups.html", context)


def _narrowed(rows: QuerySet[FollowUp], status: str, reason: str) -> QuerySet[FollowUp]:
    """Filter by status and reason; unknown values are ignored."""
    if status in FollowUp.Status.values:
        rows = rows.filter(status=status)
    return rows.filter(removed_reason=reason) if reason in set(Reason) else rows


def _found(rows: QuerySet[FollowUp], request: HttpRequest, search: str) -> QuerySet[FollowUp]:
    if not search:
        return rows
    people = matching(visible(Recipient.objects.all(), user_of(request)), search)
    return rows.filter(recipient__in=list(people.values_list("pk", flat=True)[:MOST_FOUND]))


def _counts(
    rows: QuerySet[FollowUp], column: str, *, status: str, recent: bool = False
) -> list[tuple[str, int]]:
    rows = _recent(rows, status) if recent else rows.filter(status=status)
    return list(rows.order_by().values_list(column).annotate(n=Count("pk")).order_by("-n", column))


def _recent(rows: QuerySet[FollowUp], status: str) -> QuerySet[FollowUp]:
    return rows.filter(status=status, ended_at__gt=timezone.now() - RECENT)
