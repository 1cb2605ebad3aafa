"""Finds, adds and archives single recipients, by their canonical address."""

from django.utils import timezone

from accounts.addresses import canonical
from accounts.models import Account, Recipient, Role, User
from accounts.regions import region_of
from accounts.roles import require_touch


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
    recipient, _ = Recipient.objects.get_or_create(
        owner=owner,
        channel=channel,
        address=found.text,
        defaults={"kind": found.kind, "name": name[:200], "account": account},
    )
    return recipient


def archive(recipient: Recipient, *, by: User) -> None:
    """Archive the recipient: it is in no list and receives nothing. Its history is kept."""
    require_touch(recipient, by, Role.WRITE)
    Recipient.objects.filter(pk=recipient.pk, archived_at=None).update(archived_at=timezone.now())


def unarchive(recipient: Recipient, *, by: User) -> None:
    require_touch(recipient, by, Role.WRITE)
    Recipient.objects.filter(pk=recipient.pk).update(archived_at=None)
