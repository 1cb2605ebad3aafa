"""Keeps erased people out: of their address a keyed hash stays, and whoever is added with that address is opted out.

The hash needs a key of the installation, so that nobody can find out by trying addresses who was erased. It lies in the
place of the address, with the owner and the channel, where the database allows it once.
"""

import hmac
from collections.abc import Iterable, Mapping

from django.conf import settings
from django.db.models import Q
from django.db.models.signals import post_save

from accounts.models import Recipient
from accounts.recipients import consent

PREFIX = "erased:"
LENGTH = len(PREFIX) + 64  # a number may follow, where an address was erased twice
HOW = "This address was erased on request. Nothing is sent to it."


def mark_of(owner_id: int, channel: str, address: str, key: str | None = None) -> str:
    """Return what stays of an address."""
    said = f"{owner_id}:{channel}:{address}".encode()
    digest = hmac.new((key or _keys()[0]).encode(), b"erased address " + said, "sha256").hexdigest()
    return PREFIX + digest


def erased_among(owner_id: int, channel: str, addresses: Iterable[str]) -> set[str]:
    """Return those of the addresses that were erased."""
    rows = Recipient.objects.filter(owner=owner_id, channel=channel, erased_at__isnull=False)
    marks = {address[:LENGTH] for address in rows.values_list("address", flat=True)}
    if not marks:
        return set()
    return {
        address
        for address in addresses
        if any(mark_of(owner_id, channel, address, key) in marks for key in _keys())
    }


def keep_out(owner_id: int, channel: str, added: Mapping[str, int]) -> set[str]:
    """Opt out those of the recipients just added, given by address, whose address was erased; return the addresses."""
    found = erased_among(owner_id, channel, added)
    rows = Recipient.objects.filter(Q(opted_out_at=None), pk__in=[added[address] for address in found])
    for recipient in rows:
        consent.opt_out(recipient, how=HOW)
    return found


def watch() -> None:
    """Look at each recipient that is added by a form, by the admin or by a program. Called once."""
    post_save.connect(_added, sender=Recipient, dispatch_uid="erased-added")


def _added(instance: Recipient, created: bool, **_: object) -> None:
    if created and keep_out(instance.owner_id, instance.channel, {instance.address: instance.pk}):
        instance.refresh_from_db(fields=["opted_out_at"])


def _keys() -> list[str]:
    """Return the keys with which a hash may have been made, the one for new ones first."""
    return [*settings.UNSUBSCRIBE_KEYS, settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS]
