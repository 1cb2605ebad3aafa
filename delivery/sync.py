"""The groups of an account become recipients, and follow what becomes of them.

A group that was renamed gets its new name; one that the account left is archived, and back when the account is. It
may be done again at any time, and a second one beside the first does not start.
"""

from collections.abc import Sequence
from datetime import timedelta

from django.db import IntegrityError, transaction
from django.utils import timezone

from accounts.addresses import Address, BadAddressError, canonical
from accounts.models import Account, GroupSync, Recipient, User
from accounts.roles import require_touch
from activity import counters
from delivery import asking, events, queues
from delivery.storable import storable
from delivery.transports.base import Contact

TASK = "delivery.sync_groups"
PAGE = 200
SILENT = timedelta(minutes=3)  # after which a sync that says nothing has died
LONGEST_NAME = 200
KINDS = (Recipient.Kind.GROUP, Recipient.Kind.ROOM)


def start(account: Account, *, by: User | None) -> GroupSync:
    """Have the groups read; the sync that is under way, if there is one."""
    if by is not None:
        require_touch(account, by)
    _bury(account)
    try:
        with transaction.atomic():
            sync = GroupSync.objects.create(account=account, by=by)
            queues.send_on_commit(TASK, sync.pk)
    except IntegrityError:
        return GroupSync.objects.get(account=account, finished_at=None)
    return sync


def run(sync_id: int) -> None:
    """Read the groups, page by page. A task that is delivered again finds the sync finished, or reads once more."""
    sync = GroupSync.objects.select_related("account").filter(pk=sync_id, finished_at=None).first()
    if sync is None:
        return
    seen: set[str] = set()
    sync.added = sync.renamed = 0
    try:
        with asking.line_to(sync.account) as line:
            for contacts in line.contacts(size=PAGE):
                _save(sync, _addressed(sync.account, contacts), seen)
                _progress(sync, len(seen))
        _archive_left(sync, seen)
    except asking.NoAnswerError as error:
        sync.error = str(error)[:500]
    sync.finished_at = timezone.now()
    sync.save()
    events.account_changed(sync.account_id, sync.account.owner_id)
    counters.tell(
        "group_syncs",
        reason="failed" if sync.error else "done",
        account=sync.account_id,
        seen=sync.seen,
        added=sync.added,
        left=sync.left,
        error=sync.error,
    )


def _addressed(account: Account, contacts: Sequence[Contact]) -> dict[str, tuple[Address, str]]:
    """Those with an address that we understand, by it."""
    found = {}
    for contact in contacts:
        try:
            address = canonical(account.channel, contact.address)
        except BadAddressError:
            continue
        found[address.text] = (address, storable(" ".join(contact.name.split()), LONGEST_NAME))
    return found


@transaction.atomic
def _save(sync: GroupSync, contacts: dict[str, tuple[Address, str]], seen: set[str]) -> None:
    account = sync.account
    owned = Recipient.objects.filter(owner=account.owner_id, channel=account.channel)
    known = {
        row.address: row for row in owned.filter(address__in=contacts).select_for_update().order_by("pk")
    }
    new = [
        Recipient(
            owner_id=account.owner_id,
            channel=account.channel,
            kind=address.kind,
            address=address.text,
            name=name,
            account=account if address.kind in KINDS else None,
        )
        for address, name in contacts.values()
        if address.text not in known
    ]
    Recipient.objects.bulk_create(new, ignore_conflicts=True)
    sync.added += len(new)
    changed = [row for row in known.values() if _follow(sync, row, contacts[row.address][1])]
    Recipient.objects.bulk_update(changed, ["name", "account", "left_at", "archived_at"])
    seen.update(contacts)


def _follow(sync: GroupSync, row: Recipient, name: str) -> bool:
    """Bring a known recipient up to date; whether anything changed."""
    before = (row.name, row.account_id, row.left_at)
    if name and name != row.name:
        sync.renamed += row.name != ""
        row.name = name
    if row.left_at is not None:  # archived by a sync; what a person archived stays so
        row.left_at = row.archived_at = None
        row.account_id = sync.account_id
    elif row.account_id not in {None, sync.account_id}:
        row.account_id = None  # two accounts are in it: either reaches it
    return before != (row.name, row.account_id, row.left_at)


def _archive_left(sync: GroupSync, seen: set[str]) -> None:
    """Archive the groups that were not seen; none at all means that the service has not read them itself yet."""
    groups = Recipient.objects.filter(account=sync.account_id, kind__in=KINDS, archived_at=None)
    left = [pk for pk, address in groups.values_list("pk", "address") if address not in seen]
    if left and not seen:
        sync.error = (
            f"The service listed no group, though {len(left)} are known. Nothing was changed: "
            "it may still be starting. Try again in a minute."
        )
        return
    now = timezone.now()
    sync.left = Recipient.objects.filter(pk__in=left, archived_at=None).update(archived_at=now, left_at=now)


def _progress(sync: GroupSync, seen: int) -> None:
    sync.seen = seen
    sync.save(update_fields=["seen", "added", "renamed", "progress_at"])
    events.account_changed(sync.account_id, sync.account.owner_id)


def _bury(account: Account) -> None:
    """A sync whose worker died must not keep others from starting."""
    now = timezone.now()
    dead = GroupSync.objects.filter(account=account, finished_at=None, progress_at__lt=now - SILENT)
    dead.update(finished_at=now, error="It stopped in the middle. Nothing is lost: start it again.")
