"""Tells owners what they should know, each thing once."""

from activity.models import Notification


def tell(
    owner_id: int, kind: Notification.Kind, *, key: str, title: str, body: str = "", url: str = ""
) -> bool:
    """Add to the owner's notifications unless the same `key` is there; whether it was new."""
    _, created = Notification.objects.get_or_create(
        owner_id=owner_id, key=key, defaults={"kind": kind, "title": title, "body": body[:500], "url": url}
    )
    return created
