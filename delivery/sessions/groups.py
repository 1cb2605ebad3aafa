"""Reads the groups of an account as recipients, and keeps them up to date.

A renamed group gets its new name; a group that the account left is archived, and comes back when the account does. A
sync may be repeated at any time, and a second one does not start while the first is under way.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from django.db import IntegrityError, transaction
from django.utils import timezone

from accounts.addresses import Address, BadAddressError, canonical
from accounts.models import Account, GroupSync, Recipient, Role, User
from accounts.recipients.contacts import are_members, forget_members
from accounts.roles import require_touch
from activity import counters
from activity.storable import storable
from audit.record import record
from config.long_tasks import long_tasks
from delivery import live
from delivery.engine import wakeups
from delivery.inbound import aliases
from delivery.sessions import ask
from delivery.transports.base import Contact

TASK = "delivery.sync_groups"
PAGE = 200
SILENT = timedelta(minutes=3)  # after this silence a sync counts as dead
LONGEST_NAME = 200
COME_BACK = 5.0  # seconds
KINDS = (Recipient.Kind.GROUP, Recipient.Kind.ROOM)


def start(account: Account, *, by: User | None) -> GroupSync:
    """Start reading the groups; return the sync, or the one that is under way already."""
    if by is not None:
        require_touch(account, by, Role.WRITE)
    _end_dead(account)
    try:
        with transaction.atomic():
            sync = GroupSync.objects.create(account=account, by=by)
            wakeups.send_on_commit(TASK, sync.pk)
            if by is not None:
                record("account.groups_read", account, by=by)
    except IntegrityError:
        return GroupSync.objects.get(account=account, finished_at=None)
    return sync


def run_in_turn(sync_id: int) -> None:
    """Read the groups if the owner has a free place, or come back later: each owner reads a few accounts at once."""
    sync = GroupSync.objects.filter(pk=sync_id, finished_at=None).select_related("account").first()
    if sync is None:
        return
    owner = sync.account.owner_id
    if long_tasks().take(owner):
        GroupSync.objects.filter(pk=sync_id).update(progress_at=timezone.now())  # it is waiting, not dead
        wakeups.send_on_commit(TASK, sync_id, countdown=COME_BACK)
        return
    try:
        run(sync_id)
    finally:
        long_tasks().give_back(owner)


def run(sync_id: int) -> None:
    """Read the groups, page by page. A task that is delivered again finds the sync finished, or reads once more."""
    sync = GroupSync.objects.select_related("account").filter(pk=sync_id, finished_at=None).first()
    if sync is None:
        return
    seen: set[str] = set()
    sync.added = sync.renamed = 0
    try:
        with ask.line_to(sync.account) as line:
            for contacts in line.contacts(size=PAGE):
                _save(sync, _addressed(sync.account, contacts), seen)
                members = [member for contact in contacts for member in contact.members]
                aliases.learn_members(sync.account, members)
                _progress(sync, len(seen))
        _archive_left(sync, seen)
    except ask.NoAnswerError as error:
        sync.error = str(error)[:500]
    sync.finished_at = timezone.now()
    sync.save()
    live.account_changed(sync.account_id, sync.account.owner_id)
    counters.tell(
        "group_syncs",
        reason="failed" if sync.error else "done",
        account=sync.account_id,
        seen=sync.seen,
        added=sync.added,
        left=sync.left,
        error=sync.error,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A contact with the values that a recipient would get."""

    address: Address
    name: str
    problem: str


def _addressed(account: Account, contacts: Sequence[Contact]) -> dict[str, Found]:
    """Return the contacts with a valid address, by address."""
    found = {}
    for contact in contacts:
        try:
            address = canonical(account.channel, contact.address)
        except BadAddressError:
            continue
        name = storable(" ".join(contact.name.split()), LONGEST_NAME)
        found[address.text] = Found(address=address, name=name, problem=contact.problem)
    return found


@transaction.atomic
def _save(sync: GroupSync, contacts: dict[str, Found], seen: set[str]) -> None:
    account = sync.account
    owned = Recipient.objects.filter(owner=account.owner_id, channel=account.channel)
    known = {
        row.address: row for row in owned.filter(address__in=contacts).select_for_update().order_by("pk")
    }
    new = [
        Recipient(
            owner_id=account.owner_id,
            channel=account.channel,
            kind=each.address.kind,
            address=each.address.text,
            name=each.name,
            problem=each.problem,
            account=account if each.address.kind in KINDS else None,
        )
        for each in contacts.values()
        if each.address.text not in known
    ]
    Recipient.objects.bulk_create(new, ignore_conflicts=True)
    sync.added += len(new)
    changed = [row for row in known.values() if _follow(sync, row, contacts[row.address])]
    Recipient.objects.bulk_update(changed, ["name", "account", "problem", "left_at", "archived_at"])
    are_members(account, contacts, at=timezone.now())
    seen.update(contacts)


def _follow(sync: GroupSync, row: Recipient, told: Found) -> bool:
    """Bring a known recipient up to date; return whether anything changed."""
    before = (row.name, row.account_id, row.left_at, row.problem)
    row.problem = told.problem
    if told.name and told.name != row.name:
        sync.renamed += row.name != ""
        row.name = told.name
    if row.left_at is not None:  # archived by a sync; a recipient that a person archived stays archived
        row.left_at = row.archived_at = None
        row.account_id = sync.account_id
    elif row.account_id not in {None, sync.account_id}:
        row.account_id = None  # two accounts are members: either one reaches it
    return before != (row.name, row.account_id, row.left_at, row.problem)


def _archive_left(sync: GroupSync, seen: set[str]) -> None:
    """Archive the groups that were not seen. If none was seen, the service has not read them itself yet."""
    groups = Recipient.objects.filter(account=sync.account_id, kind__in=KINDS, archived_at=None)
    left = [pk for pk, address in groups.values_list("pk", "address") if address not in seen]
    if left and not seen:
        sync.error = (
            f"The service returned no groups, but {len(left)} are known. Nothing was changed. "
            "The service may still be starting. Try again in a minute."
        )
        return
    if seen:
        forget_members(sync.account, seen_before=sync.started_at)
    now = timezone.now()
    sync.left = Recipient.objects.filter(pk__in=left, archived_at=None).update(archived_at=now, left_at=now)


def _progress(sync: GroupSync, seen: int) -> None:
    sync.seen = seen
    sync.save(update_fields=["seen", "added", "renamed", "progress_at"])
    live.account_changed(sync.account_id, sync.account.owner_id)


def _end_dead(account: Account) -> None:
    """End a sync whose worker died, so that a new one can start."""
    now = timezone.now()
    dead = GroupSync.objects.filter(account=account, finished_at=None, progress_at__lt=now - SILENT)
    dead.update(finished_at=now, error="Reading the groups stopped halfway. Nothing is lost. Start it again.")
