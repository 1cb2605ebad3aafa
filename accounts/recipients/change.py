"""Changes one recipient: its name, its variables and its tags."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.db import transaction

from accounts.models import Recipient, Role, Tag, User
from accounts.roles import require_touch
from audit.record import differing, record, values_of


@transaction.atomic
def change(
    recipient: Recipient,
    *,
    name: str | None = None,
    fields: Mapping[str, str] | None = None,
    tags: Sequence[str] | None = None,
    by: User,
) -> Recipient:
    """Save what is given and leave the rest; return the recipient as it is now."""
    require_touch(recipient, by, Role.WRITE)
    recipient = Recipient.objects.select_for_update(no_key=True).get(pk=recipient.pk)
    changed = []
    before = told(recipient)
    if name is not None:
        recipient.name = name
        changed.append("name")
    if fields is not None:
        recipient.fields = dict(fields)
        changed.append("fields")
    if changed:
        recipient.save(update_fields=changed)
    if tags is not None:
        wanted = [Tag.objects.get_or_create(owner_id=recipient.owner_id, name=tag)[0] for tag in tags]
        recipient.tags.set(wanted)
    old, new = differing(before, told(recipient))
    if new:
        record("recipient.changed", recipient, by=by, before=old, after=new)
    return recipient


def told(recipient: Recipient) -> dict[str, Any]:
    """Return what a person can change of a recipient, to record it."""
    tags = sorted(recipient.tags.values_list("name", flat=True))
    fields = {"fields": dict(recipient.fields), "tags": tags}
    return values_of(recipient, ("channel", "address", "name", "account")) | fields
