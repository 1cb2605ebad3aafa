"""Finds, adds and archives single recipients, by their canonical address."""

from django.db import transaction
from django.utils import timezone

from accounts.addresses import canonical
from accounts.models import Account, Recipient, Role, User
from accounts.regions import region_of
from accounts.roles import require_touch
from audit.record import record


def recipient_at(owner: User, channel: str, address: str) -> Recipient | None:
    """Return the owner's recipient with this address, in any notation. Raises BadAddressError."""
    found = canonical(channel, address, region=region_of(owner))
    return Recipient.objects.filter(owner=owner, channel=channel, address=found.text).first()


def recipient_for(
    owner: User, channel: str, address: str, *, name: str = "", account: Account | None = None
) -> Recipient:
    """Return the owner's recipient with this address, added if there is none. Raises BadAddressError.

    An existing recipient is not changed. Two calls at once return the same row.
    """
    found = canonical(channel, address, region=region_of(owner))
    with transaction.atomic():
        recipient, added = Recipient.objects.get_or_create(
            owner=owner,
            channel=channel,
            address=found.text,
            defaults={"kind": found.kind, "name": name[:200], "account": account},
        )
        if added:
            shown = {"channel": channel, "address": found.text, "name": recipient.name}
            record("recipient.added", recipient, after=shown)
    return recipient


@transaction.atomic
def archive(recipient: Recipient, *, by: User) -> None:
    """Archive the recipient: it is in no list and receives nothing. Its history is kept."""
    require_touch(recipient, by, Role.WRITE)
    if Recipient.objects.filter(pk=recipient.pk, archived_at=None).update(archived_at=timezone.now()):
        record("recipient.archived", recipient, by=by)


@transaction.atomic
def unarchive(recipient: Recipient, *, by: User) -> None:
    require_touch(recipient, by, Role.WRITE)
    if Recipient.objects.filter(pk=recipient.pk, archived_at__isnull=False).update(archived_at=None):
        record("recipient.unarchived", recipient, by=by)
