"""Learns who is behind a hidden address, such as WhatsApp's ...@lid, wherever a service names both together.

That is in messages and their echoes, in the participants of groups, and in receipts: a receipt names a message of
ours, and the ledger knows its recipient. A message from a hidden address with no known person behind it waits in
`Inbound.waits_for`, and is handled once the address is stored here.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta

from django.db.models import Exists, OuterRef, QuerySet
from django.utils import timezone

from accounts.addresses import BadAddressError, canonical
from accounts.models import Account, AddressAlias, Recipient
from activity.models import Inbound
from activity.storable import storable
from delivery.transports.base import Known

Source = AddressAlias.Source
# WhatsApp's own hidden addresses, and the ids that Meta gives to the users of a business.
HIDDEN = re.compile(r"[0-9]{1,20}@lid|[A-Z]{2}\.(ENT\.)?[A-Za-z0-9]{1,128}")
LONGEST = 255
AT_ONCE = 1_000
WAITS = timedelta(days=90)  # an older message has no effect any more


def learn(account: Account, found: Iterable[Known], source: Source) -> bool:
    """Store new pairs; the newest report counts. Return whether there was anything new."""
    told = _read(account, found)
    same = AddressAlias.objects.filter(account=account, alias__in=told)
    known = dict(same.values_list("alias", "address"))
    new = {alias: address for alias, address in sorted(told.items()) if known.get(alias) != address}
    now = timezone.now()
    AddressAlias.objects.bulk_create(
        [
            AddressAlias(account=account, alias=alias, address=address, source=source, learnt_at=now)
            for alias, address in new.items()
        ],
        update_conflicts=True,
        unique_fields=["account", "alias"],
        update_fields=["address", "source", "learnt_at"],
    )
    return bool(new)


def learn_members(account: Account, found: Sequence[Known]) -> None:
    """Store the group members who are recipients; about the others nothing is stored."""
    for start in range(0, len(found), AT_ONCE):
        told = _read(account, found[start : start + AT_ONCE])
        people = Recipient.objects.filter(
            owner=account.owner_id, channel=account.channel, address__in=told.values()
        )
        ours = set(people.values_list("address", flat=True))
        known = [Known(hidden=alias, address=address) for alias, address in told.items() if address in ours]
        learn(account, known, Source.GROUP)


def _read(account: Account, found: Iterable[Known]) -> Mapping[str, str]:
    told = {}
    for each in found:
        try:
            address = canonical(account.channel, each.address).text
        except BadAddressError:
            continue
        if HIDDEN.fullmatch(each.hidden) and not HIDDEN.fullmatch(address):
            told[storable(each.hidden, LONGEST)] = address
    return told


def names_of(account: Account, address: str) -> list[str]:
    """Return all addresses of the person at this one, in canonical form; the given address comes first."""
    try:
        own = canonical(account.channel, address).text
    except BadAddressError:
        own = address
    of_account = AddressAlias.objects.filter(account=account)
    behind = list(of_account.filter(alias=own).values_list("address", flat=True))
    others = of_account.filter(address__in=[own, *behind]).order_by("alias").values_list("alias", flat=True)
    return list(dict.fromkeys([own, *behind, *others]))


def is_unknown(account: Account, address: str) -> bool:
    """Decide whether an address is hidden and no person is known behind it yet."""
    return HIDDEN.fullmatch(address) is not None and len(names_of(account, address)) == 1


def resolvable() -> QuerySet[Inbound]:
    """Return the events that waited for a hidden address behind which a person is known now."""
    known = AddressAlias.objects.filter(account=OuterRef("account"), alias=OuterRef("waits_for"))
    lately = Inbound.objects.filter(created_at__gt=timezone.now() - WAITS)
    return lately.exclude(waits_for="").filter(Exists(known))
