"""Finds when a message left, and which message a recipient answered.

A target is settled when its last part has landed. An answer may come before that, faster than a slow service or
between two parts, and still after the message left: the ledger has the time at which it left.
"""

from datetime import datetime, timedelta

from django.db.models import Min, Q
from django.db.models.functions import Coalesce

from accounts.models import Recipient
from activity.models import Attempt
from delivery.models import RunTarget
from delivery.states import TargetStatus

ARRIVED = (TargetStatus.SENT, TargetStatus.UNCONFIRMED)  # people who reply to an unconfirmed message got it
MAY_HAVE_LEFT = (Attempt.Outcome.SENT, Attempt.Outcome.UNKNOWN)
# Services give the time of a message in whole seconds: a reply of the same second was written after ours.
WHOLE_SECOND = timedelta(seconds=1)


def left_at() -> Coalesce:
    """Return the time at which the first part of a target began to leave."""
    began = Min("ledger__at", filter=Q(ledger__outcome__in=MAY_HAVE_LEFT))
    return Coalesce(began, "settled_at")


def when_left(target: RunTarget) -> datetime | None:
    found = RunTarget.objects.filter(pk=target.pk).annotate(left_at=left_at())
    return found.values_list("left_at", flat=True).first()


def answered_by(recipient: Recipient, said_at: datetime, **which: object) -> RunTarget | None:
    """Return the message they answered: the last of the given ones that had left when they wrote."""
    arrived = recipient.targets.filter(status__in=ARRIVED, **which).annotate(left_at=left_at())
    left = arrived.filter(left_at__lt=said_at + WHOLE_SECOND).select_related("run__reminder", "account")
    return left.order_by("-settled_at").first()


def spoke_since(recipient: Recipient, left_at: datetime) -> bool:
    """Return whether they have written since a message left."""
    said_at = recipient.last_inbound_at
    return said_at is not None and said_at + WHOLE_SECOND > left_at
