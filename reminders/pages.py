"""The list of reminders."""

from django.contrib.auth.decorators import login_required
from django.db.models import OuterRef, Subquery
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from accounts.paging import page_of
from accounts.roles import visible
from delivery.models import Run
from reminders.models import Reminder


@login_required
def reminder_list(request: HttpRequest) -> HttpResponse:
    search = request.GET.get("q", "").strip()
    reminders = visible(Reminder.objects.filter(archived_at=None), request.user)
    if search:
        reminders = reminders.filter(name__icontains=search)
    last_run = Run.objects.filter(reminder=OuterRef("pk")).order_by("-id").values("status")[:1]
    rows = reminders.select_related("owner").annotate(last_run=Subquery(last_run))
    page = page_of(rows, request.GET, newest_first=True)
    return render(request, "reminders/reminder_list.html", {"page": page, "search": search})
