"""The actions Schedule, Switch off and Send now in the admin."""

from collections.abc import Iterable
from typing import Any

from django.conf import settings
from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from accounts.admin.actions import MOST_AT_ONCE, Button, Question, confirmed
from accounts.admin.archiving import Archiving
from accounts.models import Approval
from delivery.fanout import NothingToSendError
from delivery.lifecycle import WrongStateError
from reminders import scheduling
from reminders.by_hand.last_look import REST, LastLook, last_look
from reminders.by_hand.send import send
from reminders.models import Reminder
from reminders.readiness import NotReadyError

Status = Reminder.Status


class ReminderMoves(Archiving):
    refusals = (NotReadyError, NothingToSendError, WrongStateError, PermissionDenied)

    def buttons(self, row: Reminder) -> Iterable[Button]:
        if not row.archived_at:
            yield from self._steering(row)
        yield from super().buttons(row)

    def _steering(self, row: Reminder) -> Iterable[Button]:
        if row.status == Status.SCHEDULED:
            yield Button(action="switch_off", label="Switch off")
        else:
            yield Button(action="schedule", label="Schedule")
        if row.status != Status.DRAFT:
            yield Button(action="fire_now", label="Send now")

    @admin.action(description="Schedule the selected reminders", permissions=["view"])
    def schedule(self, request: HttpRequest, queryset: QuerySet[Reminder]) -> HttpResponse | None:
        return self.each(request, queryset, scheduling.schedule, "Scheduled")

    @admin.action(description="Switch the selected reminders off", permissions=["view"])
    def switch_off(self, request: HttpRequest, queryset: QuerySet[Reminder]) -> HttpResponse | None:
        return self.each(request, queryset, scheduling.switch_off, "Switched off")

    @admin.action(description="Send the selected reminders now", permissions=["view"])
    def fire_now(self, request: HttpRequest, queryset: QuerySet[Reminder]) -> HttpResponse | None:
        """Ask for confirmation first, with how many recipients each reminder reaches."""
        if confirmed(request):
            return self.each(request, queryset, _fire, "Started")
        asked = Question(
            action="fire_now",
            title="Send now?",
            sentence=f"Its messages are sent in the delivery hours. A large run waits for {settings.UNDO_SECONDS:g} "
            "seconds: until then, Undo on its page takes it back.",
            button="Yes, send now",
            rows=[(reminder, _reach(reminder)) for reminder in queryset[:MOST_AT_ONCE]],
        )
        return self.ask(request, asked)


def _reach(reminder: Reminder) -> str:
    look = last_look(reminder, now=timezone.now())
    left_out = " Those who received it within the last day are left out." if look.repeat else ""
    return " ".join(look.sentences) + left_out


def _fire(reminder: Reminder, *, by: Any) -> None:
    """Send it as the question said: without those who lack a value or received it within a day."""
    number = last_look(reminder, now=timezone.now()).audience.complete
    said = {"confirmed": "1", "number": str(number), "without": "1", "again": REST}
    found = send(reminder, by=by, said=said)
    if isinstance(found, LastLook):
        raise NothingToSendError(found.why_not)
    if isinstance(found, Approval):
        raise NothingToSendError(f"It waits for approval. {found.why}")
