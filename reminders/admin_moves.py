"""What staff do to reminders in the admin, from the list and from a reminder's page alike.

The page's buttons post to the list's actions, so that there is one way. Each action calls what the pages and the
commands call, and what cannot be done says why.
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse

from delivery.fanout import NothingToSendError
from delivery.lifecycle import WrongStateError
from reminders import audience, scheduling
from reminders.fire import fire, refuse_drafts
from reminders.models import Reminder
from reminders.readiness import NotReadyError

if TYPE_CHECKING:
    _ModelAdmin = admin.ModelAdmin[Any]
else:
    _ModelAdmin = object

REFUSALS = (NotReadyError, NothingToSendError, WrongStateError, PermissionDenied)
MOST_AT_ONCE = 100


class Moves(_ModelAdmin):
    """Schedule, Switch off and Fire now."""

    change_form_template = "admin/reminders/reminder/change_form.html"

    @admin.action(description="Schedule", permissions=["view"])
    def schedule(self, request: HttpRequest, queryset: QuerySet[Reminder]) -> HttpResponse | None:
        return self._each(request, queryset, scheduling.schedule, "Scheduled")

    @admin.action(description="Switch off", permissions=["view"])
    def switch_off(self, request: HttpRequest, queryset: QuerySet[Reminder]) -> HttpResponse | None:
        return self._each(request, queryset, scheduling.switch_off, "Switched off")

    @admin.action(description="Fire now", permissions=["view"])
    def fire_now(self, request: HttpRequest, queryset: QuerySet[Reminder]) -> HttpResponse | None:
        """Asks first, with how many each of them reaches."""
        if "confirmed" in request.POST:
            return self._each(request, queryset, _fire, "Fired")
        context = {
            **self.admin_site.each_context(request),
            "title": "Fire now?",
            "opts": self.opts,
            "rows": [(reminder, audience.count(reminder)) for reminder in queryset[:MOST_AT_ONCE]],
            "back_to": request.POST.get("back_to", ""),
        }
        return TemplateResponse(request, "admin/reminders/reminder/fire_now.html", context)

    def _each(
        self, request: HttpRequest, chosen: QuerySet[Reminder], move: Callable[..., object], done: str
    ) -> HttpResponse | None:
        refused = list(self._refusals(request, chosen[:MOST_AT_ONCE], move))
        moved = min(chosen.count(), MOST_AT_ONCE) - len(refused)
        if moved:
            self.message_user(request, f"{done}: {moved:,}.", messages.SUCCESS)
        for sentence in refused:
            self.message_user(request, sentence, messages.WARNING)
        return self._back(request)

    def _refusals(
        self, request: HttpRequest, chosen: QuerySet[Reminder], move: Callable[..., object]
    ) -> Iterator[str]:
        for reminder in chosen:
            try:
                move(reminder, by=request.user)
            except REFUSALS as error:
                yield f"{reminder}: {error}"

    def _back(self, request: HttpRequest) -> HttpResponse | None:
        """To the reminder's page, if its button was pressed; else Django goes back to the list."""
        page = request.POST.get("back_to", "")
        return redirect("admin:reminders_reminder_change", page) if page.isdigit() else None


def _fire(reminder: Reminder, *, by: Any) -> None:
    refuse_drafts(reminder)
    fire(reminder, by=by)
