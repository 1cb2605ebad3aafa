"""The states of an item as people see them, read from its target: nothing about its progress is stored twice."""

from enum import StrEnum
from typing import TYPE_CHECKING

from django.db.models import Case, CharField, F, OuterRef, Q, Subquery, Value, When
from django.db.models.functions import NullIf
from django.utils import timezone

from activity.models import Inbound
from delivery import conf
from delivery.items import LATER, WITHDRAWN
from delivery.states import TargetStatus

if TYPE_CHECKING:
    from datetime import datetime

    from django.db.models import QuerySet

    from queues.models import Item


class ItemState(StrEnum):
    """The state of an item, as its page, its source and the API say it."""

    WAITING = "waiting"  # may leave as soon as windows and limits allow
    PLANNED = "planned"  # leaves at its time
    SENDING = "sending"
    SENT = "sent"
    RETURNED = "returned"  # sent, and reported as not delivered afterwards
    FAILED = "failed"
    IN_DOUBT = "in_doubt"  # may have arrived; a person decides
    SKIPPED = "skipped"  # not sent, for example after an opt-out
    WITHDRAWN = "withdrawn"

    @property
    def label(self) -> str:
        return LABELS[self]


LABELS = {
    ItemState.WAITING: "Waiting",
    ItemState.PLANNED: "Planned",
    ItemState.SENDING: "Sending",
    ItemState.SENT: "Sent",
    ItemState.RETURNED: "Returned",
    ItemState.FAILED: "Failed",
    ItemState.IN_DOUBT: "In doubt",
    ItemState.SKIPPED: "Skipped",
    ItemState.WITHDRAWN: "Withdrawn",
}

# Items that may be changed, re-planned and withdrawn, unless something was tried for them already.
OPEN = frozenset({ItemState.WAITING, ItemState.PLANNED})


def condition(state: ItemState, now: "datetime") -> Q:
    """Return the condition for items of this state."""
    skipped = Q(target__status=TargetStatus.SKIPPED)
    return {
        ItemState.WAITING: Q(target__status=TargetStatus.PENDING, target__not_before__lte=now),
        ItemState.PLANNED: Q(target__status=TargetStatus.PENDING, target__not_before__gt=now),
        ItemState.SENDING: Q(target__status=TargetStatus.SENDING),
        ItemState.SENT: Q(target__status=TargetStatus.SENT, target__returned_at__isnull=True),
        ItemState.RETURNED: Q(target__status=TargetStatus.SENT, target__returned_at__isnull=False),
        ItemState.FAILED: Q(target__status=TargetStatus.FAILED),
        ItemState.IN_DOUBT: Q(target__status=TargetStatus.UNCONFIRMED),
        ItemState.SKIPPED: skipped & ~Q(target__error=WITHDRAWN),
        ItemState.WITHDRAWN: skipped & Q(target__error=WITHDRAWN),
    }[state]


def _later_than_planned() -> Q:
    """Return the condition for items whose time was moved without a word: see `LATER`."""
    as_planned = Q(target__run__on_time_first=True, planned_at__isnull=False) & Q(
        target__not_before__lte=F("planned_at") + conf.drain().on_time
    )
    return ~as_planned


def with_state(items: "QuerySet[Item]") -> "QuerySet[Item]":
    """Add to items: `state`, `planned_for`, `sent_at`, `why`, and `replied_at` with `reply`."""
    now = timezone.now()
    whens = [When(condition(state, now), then=Value(state.value)) for state in ItemState]
    pending, sent = Q(target__status=TargetStatus.PENDING), Q(target__status=TargetStatus.SENT)
    reply = Inbound.objects.filter(
        kind=Inbound.Kind.MESSAGE, recipient=OuterRef("recipient"), at__gte=OuterRef("target__settled_at")
    ).order_by("at", "id")
    returned = When(sent & Q(target__returned_at__isnull=False), then=F("target__return_reason"))
    told = NullIf(F("target__error"), Value(""))
    return items.annotate(
        state=Case(*whens, default=Value(""), output_field=CharField()),
        planned_for=Case(When(pending, then=F("target__not_before"))),
        sent_at=Case(When(sent, then=F("target__settled_at"))),
        why=Case(
            returned,
            When(~pending & ~sent & Q(target__error=WITHDRAWN), then=Value("")),
            When(target__error__gt="", then=told),
            When(pending & Q(moved_why__gt=""), then=F("moved_why")),
            When(condition(ItemState.PLANNED, now) & _later_than_planned(), then=Value(LATER)),
            default=F("late_change"),
            output_field=CharField(),
        ),
        replied_at=Case(When(sent, then=Subquery(reply.values("at")[:1]))),
        reply=Case(
            When(sent, then=Subquery(reply.values("text")[:1])), default=Value(""), output_field=CharField()
        ),
    )
