"""The newest replies to a reminder or a run, for its page."""

from django.db.models import QuerySet

from activity.models import Inbound
from delivery.models import Run
from reminders.models import Reminder

SHOWN = 10
RUNS = 30  # of a reminder: the newest


def replies_to_run(run: Run) -> list[Inbound]:
    return _newest(Inbound.objects.filter(run=run))


def replies_to_reminder(reminder: Reminder) -> list[Inbound]:
    """Return the newest ones of its newest runs, a few of each: all replies of a reminder may be a million."""
    runs = Run.objects.filter(reminder=reminder).order_by("-pk").values_list("pk", flat=True)[:RUNS]
    of_each = [_messages(Inbound.objects.filter(run=pk)).values("pk")[:SHOWN] for pk in runs]
    if not of_each:
        return []
    some = of_each[0].union(*of_each[1:], all=True) if len(of_each) > 1 else of_each[0]
    return _newest(Inbound.objects.filter(pk__in=[row["pk"] for row in some]))


def _newest(replies: QuerySet[Inbound]) -> list[Inbound]:
    return list(_messages(replies).select_related("recipient")[:SHOWN])


def _messages(replies: QuerySet[Inbound]) -> QuerySet[Inbound]:
    return replies.filter(kind=Inbound.Kind.MESSAGE).order_by("-at", "-id")
