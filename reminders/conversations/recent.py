"""The newest replies to a reminder or a run, for its page."""

from django.db.models import QuerySet

from activity.models import Inbound
from delivery.models import Run
from reminders.models import Reminder

SHOWN = 10


def replies_to_run(run: Run) -> list[Inbound]:
    return _newest(Inbound.objects.filter(run=run))


def replies_to_reminder(reminder: Reminder) -> list[Inbound]:
    return _newest(Inbound.objects.filter(run__reminder=reminder))


def _newest(replies: QuerySet[Inbound]) -> list[Inbound]:
    found = replies.filter(kind=Inbound.Kind.MESSAGE).select_related("recipient").order_by("-at", "-id")
    return list(found[:SHOWN])
