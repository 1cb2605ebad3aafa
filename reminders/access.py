"""Finds what an address names, for those who may see or touch it: others get 404, readers who write 403."""

from django.http import HttpRequest

from accounts.access import seen, user_of
from accounts.roles import require_touch
from delivery.models import Run
from reminders.models import Reminder

__all__ = ["seen", "seen_reminder", "seen_run", "touched_reminder", "touched_run", "user_of"]


def seen_reminder(request: HttpRequest, pk: int) -> Reminder:
    return seen(Reminder.objects.select_related("owner"), request, pk)


def touched_reminder(request: HttpRequest, pk: int) -> Reminder:
    reminder = seen_reminder(request, pk)
    require_touch(reminder, request.user)
    return reminder


def seen_run(request: HttpRequest, pk: int) -> Run:
    return seen(Run.objects.select_related("reminder", "owner"), request, pk)


def touched_run(request: HttpRequest, pk: int) -> Run:
    run = seen_run(request, pk)
    require_touch(run, request.user)
    return run
