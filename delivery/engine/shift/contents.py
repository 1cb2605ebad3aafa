"""Reads what targets say that have a content of their own: the items of queues."""

from collections.abc import Collection

from delivery.models import TargetContent
from delivery.parts import OwnContent, thaw


def contents_of(target_ids: Collection[int]) -> dict[int, OwnContent]:
    """Return the contents of targets by their ids."""
    return {
        pk: OwnContent(
            subject=row.subject, parts=None if row.parts is None else thaw(row.parts), values=row.values
        )
        for pk, row in TargetContent.objects.in_bulk(target_ids).items()
    }
