"""Finds and adds single recipients, by their canonical address."""

from django.utils import timezone

from accounts.addresses import canonical
from accounts.models import Account, Recipient, User
from accounts.regions import region_of
from accounts.roles import require_touch


def recipient_at(owner: User, channel: str, address: str) -> Recipient | None:
    """The owner's recipient with this address, however it is written. Raises BadAddressError."""
    found = canonical(channel, address, region=region_of(owner))
    return Recipient.objects.filter(owner=owner, channel=channel, address=found.text).first()


def recipient_for(
    owner: User, channel: str, address: str, *, name: str = "", account: Account | None = None
) -> Recipient:
    """The owner's recipient with this address, added where there is none. Raises BadAddressError.

    One that exists stays as it is. Two at once get the same row.
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
    """Put it away: it leaves every list and gets nothing more. Its history stays."""
    require_touch(recipient, by)
    Recipient.objects.filter(pk=recipient.pk, archived_at=None).update(archived_at=timezone.now())


def unarchive(recipient: Recipient, *, by: User) -> None:
    require_touch(recipient, by)
    Recipient.objects.filter(pk=recipient.pk).update(archived_at=None)
