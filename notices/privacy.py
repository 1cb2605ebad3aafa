"""Deletes what was written for mailboxes and chat services about a person who is erased."""

from typing import Any

from django.db.models import Q

from accounts.models import Recipient, TeamMate
from activity.privacy.erase import naming
from notices.models import Notice


def erase(*, recipient: Recipient, **_: Any) -> tuple[str, int]:
    """Delete the notices of the owner and the team that name the recipient, also those that were not sent yet."""
    mates = TeamMate.objects.filter(owner=recipient.owner_id).values("mate")
    theirs = Q(address__person=recipient.owner_id) | Q(address__person__in=mates)
    return "notices", naming(Notice.objects.filter(theirs), ("title", "body"), recipient).delete()[0]
