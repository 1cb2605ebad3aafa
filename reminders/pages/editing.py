"""Finds the reminder that a page changes: a draft needs the role that writes, any other the role that sends."""

from django.http import HttpRequest

from accounts.access import seen
from accounts.roles import require_touch
from reminders.models import Reminder


def edited(request: HttpRequest, pk: int) -> Reminder:
    """Return the reminder if the person may edit it as it is now."""
    reminder = seen(Reminder.objects.select_related("owner"), request, pk)
    require_touch(reminder, request.user, reminder.role_to_edit)
    return reminder
