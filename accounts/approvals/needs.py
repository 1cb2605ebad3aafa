"""Reads when an owner wants a second person, and what was approved."""

from collections.abc import Iterable, Sequence

from django.conf import settings

from accounts.approvals import rules
from accounts.models import Approval, ApprovalNumber

Kind = Approval.Kind


def numbers_of(owners: Iterable[int]) -> dict[int, int]:
    """Return the number of each owner above which a second person approves; owners without one are left out."""
    ids = set(owners)
    own = dict(ApprovalNumber.objects.filter(owner__in=ids).values_list("owner", "above"))
    found = {pk: rules.strictest(settings.APPROVAL_ABOVE, own.get(pk)) for pk in ids}
    return {pk: number for pk, number in found.items() if number is not None}


def number_of(owner_id: int) -> int | None:
    return numbers_of([owner_id]).get(owner_id)


def is_approved(reminder_id: int, kinds: Sequence[Kind], *, content: str, recipients: int = 0) -> bool:
    """Return whether this very content was approved, for at least so many recipients."""
    found = Approval.objects.approved().filter(reminder=reminder_id, kind__in=kinds, content=content)
    return found.filter(covers__gte=recipients).exists()
