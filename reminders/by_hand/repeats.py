"""The recipients of a reminder who received it within the last day."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Exists, OuterRef, Q, QuerySet

from accounts.models import Recipient
from delivery.audience import somebody_left
from delivery.models import Run, RunTarget
from delivery.states import TargetStatus
from reminders.headcount import account_ids
from reminders.models import Reminder

WITHIN = timedelta(days=1)
COUNTED = 10_000  # recipients that are counted one by one
NAMED = 5
MAY_HAVE = (TargetStatus.SENT, TargetStatus.UNCONFIRMED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeat:
    """The recipients who would get the reminder again within a day."""

    last: Run  # the newest run that reached somebody
    runs: Sequence[int]
    received: int  # recipients of today's audience who received it, or may have
    unconfirmed: int  # of the newest run
    names: Sequence[str]  # of the first unconfirmed ones
    left: bool = True  # whether somebody of today's audience has not received it

    @property
    def words_of_received(self) -> str:
        return f"{self.received:,}{' or more' if self.received == COUNTED else ''}"

    @property
    def who_received(self) -> str:
        """Return the beginning of a sentence: Everybody; 37 of them."""
        return f"{self.words_of_received} of them" if self.left else "Everybody"

    @property
    def words_of_names(self) -> str:
        return listed(self.names, self.unconfirmed)


def repeat_of(reminder: Reminder, *, now: datetime) -> Repeat | None:
    """Return who would get it a second time within a day, or None where nobody would."""
    recent = Q(fired_at__gte=now - WITHIN) | Q(finished_at__gte=now - WITHIN)
    reached = Q(sent__gt=0) | Q(unconfirmed__gt=0)
    runs = Run.objects.filter(recent, reached, reminder=reminder, kind=Run.Kind.REMINDER)
    found = list(runs.defer("parts").order_by("-pk"))
    ids = [run.pk for run in found]
    received = _received(reminder, ids) if found else 0
    if not received:
        return None
    left = received == COUNTED or somebody_left(reminder.pk, account_ids(reminder), without=ids)
    return Repeat(
        last=found[0],
        runs=ids,
        left=left,
        received=received,
        unconfirmed=found[0].unconfirmed,
        names=_unconfirmed(found[0]) if found[0].unconfirmed else (),
    )


def listed(names: Sequence[str], count: int) -> str:
    """Return the names, and how many more there are: Choir, Parents and 12 more."""
    more = count - len(names)
    return ", ".join(names) + (f" and {more:,} more" if more > 0 else "")


def _received(reminder: Reminder, runs: Sequence[int]) -> int:
    """Count the recipients of the reminder who received one of these runs, or may have."""
    targets = RunTarget.objects.filter(_chosen(reminder), run__in=runs, status__in=MAY_HAVE)
    ids = targets.order_by().values_list(
        "recipient_id", flat=True
    )  # by id, all targets there are would be read
    return len(set(ids[:COUNTED]))


def _chosen(reminder: Reminder) -> Q:
    named = Reminder.recipients.through.objects.filter(reminder=reminder, recipient=OuterRef("recipient_id"))
    tags = Reminder.tags.through.objects.filter(reminder=reminder).values("tag")
    tagged = Recipient.tags.through.objects.filter(tag__in=tags, recipient=OuterRef("recipient_id"))
    return Q(Exists(named)) | Q(Exists(tagged))


def _unconfirmed(run: Run) -> list[str]:
    targets: QuerySet[RunTarget] = RunTarget.objects.filter(run=run, status=TargetStatus.UNCONFIRMED)
    ids = list(targets.order_by("pk").values_list("recipient_id", flat=True)[:NAMED])
    names = {recipient.pk: str(recipient) for recipient in Recipient.objects.filter(pk__in=ids)}
    return [names[pk] for pk in ids if pk in names]
