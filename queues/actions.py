"""Adds, changes, re-plans and withdraws the items of a queue, for people, sources and the API.

Every function is one transaction. It locks the queue first, so that two of them do not do the same at once, then the
runs that it changes. The sending of a queue is in `queues/steering.py`.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from django.db import transaction
from django.utils import timezone

from accounts.addresses import BadAddressError, canonical
from accounts.models import Account, Recipient, Role, User
from accounts.regions import region_of
from accounts.roles import require_touch
from audit.record import record
from config import many_rows
from delivery import conf, items
from delivery.items import Content, NewTarget
from delivery.models import RunTarget
from delivery.overdue import overdue_before
from queues import approval
from queues.entries import (
    Entry,
    EntryError,
    check,
    check_variables,
    parts_of,
    refusal,
    uses_template,
)
from queues.models import Item, Queue
from queues.runs import Form, OpenRuns, form_of, lock_open
from queues.senders import Senders, check_sender, senders
from reminders.drafts import NotPossibleError
from reminders.models import Media

MOST = 5_000  # entries of one call
BEGUN = "It has begun to be sent, so it cannot be changed any more."
TAKEN_BACK = "A person withdrew it here. Add it under another id to send it after all."


class Took(StrEnum):
    """The result of an entry."""

    ADDED = "added"
    CHANGED = "changed"
    UNCHANGED = "unchanged"
    BEGUN = "begun"  # too late to change it
    WITHDRAWN = "withdrawn"  # a person withdrew it, and it stays so
    REFUSED = "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The result of one entry; `why` is for a person, where it was not taken."""

    own_id: str
    took: Took
    item_id: int | None = None
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """How many items were withdrawn or re-planned, and how many had begun or ended before."""

    done: int
    begun: int


@dataclass(slots=True, kw_only=True)
class Taking:
    """One call of `put`: its entries, what was found for them, and their results."""

    queue: Queue
    source: str
    entries: Sequence[Entry]
    media: Mapping[int, Media]
    known: dict[str, Item]
    marks: list[str]  # the fingerprints of the entries
    results: dict[int, Result] = field(default_factory=dict)
    recipients: dict[int, Recipient] = field(default_factory=dict)  # by the place of the entry
    places: dict[str, int] = field(default_factory=dict)  # of own ids
    choice: Senders = field(default_factory=lambda: Senders(accounts=[]))
    open_runs: OpenRuns | None = None

    def say(self, place: int, took: Took, *, item_id: int | None = None, why: str = "") -> None:
        self.results[place] = Result(own_id=self.entries[place].own_id, took=took, item_id=item_id, why=why)

    def open(self) -> Iterator[tuple[int, Entry]]:
        """Yield the entries that have no result yet, with their places."""
        for place, entry in enumerate(self.entries):
            if place not in self.results:
                yield place, entry


@transaction.atomic
def put(queue: Queue, entries: Sequence[Entry], *, source: str, by: User | None) -> list[Result]:
    """Add new entries and change those that are known by their own id; return what became of each, in order.

    1. Entries that are equal to what was given last change nothing, and wrong ones are refused with a reason.
    2. Recipients are found by their address, and added where there is none.
    3. Items that have not begun are changed; for the others `late_change` says why not.
    4. New items get an account, and go into the open run of their queue and account.
    """
    queue = locked(queue, by)
    if len(entries) > MOST:
        raise NotPossibleError(f"At most {MOST:,} items can be given at once. Give them in parts.")
    if queue.archived_at is not None:
        raise NotPossibleError(f"{queue} is archived. Unarchive it first.")
    taking = _taking(queue, entries, source)
    _read(taking)
    _find_recipients(taking)
    taking.choice = senders(queue, {recipient.pk for recipient in taking.recipients.values()})
    if not taking.choice.accounts:
        raise NotPossibleError(f"{queue} has no account to send from. Choose one first.")
    _check_each(taking)
    _require_approval(taking)
    if any(taking.open()):
        targets = RunTarget.objects.filter(pk__in=[item.target_id for item in taking.known.values()])
        known = list(targets.values_list("run_id", flat=True))
        taking.open_runs = lock_open(queue, known)
        _change_known(taking, taking.open_runs)
        _add_new(taking, taking.open_runs)
    results = [taking.results[place] for place in range(len(entries))]
    if taken := [each.item_id for each in results if each.took in {Took.ADDED, Took.CHANGED}]:
        record("items.given", queue, by=by, note=f"{len(taken):,} from {source}")
        _tell(taken)
    return results


def change(item: Item, entry: Entry, *, by: User | None) -> Item:
    """Change one item; raise NotPossibleError with the reason where that is not possible."""
    (result,) = put(item.queue, [entry], source=item.source, by=by)
    if result.took in {Took.REFUSED, Took.BEGUN, Took.WITHDRAWN}:
        raise NotPossibleError(result.why)
    item.refresh_from_db()
    return item


@transaction.atomic
def withdraw(
    queue: Queue,
    *,
    by: User | None,
    source: str = "",
    own_ids: Collection[str] = (),
    item_ids: Collection[int] = (),
    by_source: bool = False,
) -> Done:
    """Withdraw items, by their own ids or ours; those that have begun stay. Withdrawn ones are counted as done."""
    queue = locked(queue, by)
    chosen = _chosen(queue, source, own_ids, item_ids)
    open_ones = [item for item in chosen if item.withdrawn_at is None]
    locks = items.lock_runs(item.target.run_id for item in open_ones)
    held = items.hold([item.target_id for item in open_ones], locks)
    items.withdraw(held, locks)
    gone = [item.pk for item in open_ones if item.target_id in held]
    who = Item.WithdrawnBy.SOURCE if by_source else Item.WithdrawnBy.PERSON
    Item.objects.filter(pk__in=gone).update(withdrawn_at=timezone.now(), withdrawn_by=who, moved_why="")
    if not by_source:
        Item.objects.filter(pk__in=[item.pk for item in chosen], withdrawn_at__isnull=False).update(
            withdrawn_by=who
        )
    if gone:
        record("items.withdrawn", queue, by=by, note=f"{len(gone):,} items")
        _tell(gone)
    return Done(done=len(gone), begun=len(open_ones) - len(gone))


@transaction.atomic
def replan(queue: Queue, *, item_ids: Collection[int], planned_at: datetime | None, by: User | None) -> Done:
    """Give items another planned time, or none; those that have begun stay."""
    queue = locked(queue, by)
    chosen = _chosen(queue, "", (), item_ids)
    open_runs = lock_open(queue, [item.target.run_id for item in chosen])
    held = items.hold([item.target_id for item in chosen], open_runs.runs)
    moving = [item for item in chosen if item.target_id in held]
    for item in moving:
        item.planned_at, item.moved_why, item.changed_at = planned_at, "", timezone.now()
    many_rows.update(moving, ["planned_at", "moved_why", "changed_at"])
    at = _not_before(queue, planned_at)
    items.replan(dict.fromkeys(held, at))
    _settle_in(open_runs, moving, held)
    if moving:
        record("items.planned", queue, by=by, note=f"{len(moving):,} items")
        _tell([item.pk for item in moving])
    return Done(done=len(moving), begun=len(chosen) - len(moving))


def locked(queue: Queue, by: User | None) -> Queue:
    """Lock the queue until this transaction ends and return it as it is now; refuse people who may not change it."""
    if by is not None:
        require_touch(queue, by, Role.SEND)
    return Queue.objects.select_for_update(no_key=True, of=("self",)).select_related("owner").get(pk=queue.pk)


def _tell(item_ids: Collection[int | None]) -> None:
    """Tell webhooks how these items are now."""
    items.items_changed(RunTarget.objects.filter(item__in=item_ids))


def _chosen(queue: Queue, source: str, own_ids: Collection[str], item_ids: Collection[int]) -> list[Item]:
    rows = Item.objects.filter(queue=queue).select_related("target__run")
    rows = rows.filter(source=source, own_id__in=own_ids) if source else rows.filter(pk__in=item_ids)
    return list(rows.order_by("pk"))


# Steps of `put`.


def _taking(queue: Queue, entries: Sequence[Entry], source: str) -> Taking:
    wanted = {pk for entry in entries for pk in entry.media}
    known = Item.objects.filter(queue=queue, source=source, own_id__in=[entry.own_id for entry in entries])
    return Taking(
        queue=queue,
        source=source,
        entries=entries,
        media=Media.objects.filter(owner=queue.owner_id).in_bulk(wanted) if wanted else {},
        known={item.own_id: item for item in known},
        marks=[entry.fingerprint() for entry in entries],
    )


def _read(taking: Taking) -> None:
    """Find entries that change nothing, and those that are wrong whoever they are for."""
    for place, entry in enumerate(taking.entries):
        item, mark = taking.known.get(entry.own_id), taking.marks[place]
        if entry.own_id in taking.places:
            taking.say(place, Took.REFUSED, why=f"The id “{entry.own_id}” is given twice.")
            continue
        taking.places[entry.own_id] = place
        if item is not None and item.withdrawn_by == Item.WithdrawnBy.PERSON:
            taking.say(place, Took.WITHDRAWN, item_id=item.pk, why=TAKEN_BACK)
        elif item is not None and item.given == mark and item.withdrawn_at is None:
            if item.late_change:
                taking.say(place, Took.BEGUN, item_id=item.pk, why=item.late_change)
            else:
                taking.say(place, Took.UNCHANGED, item_id=item.pk)
        else:
            _refuse_wrong(taking, place, entry)


def _refuse_wrong(taking: Taking, place: int, entry: Entry) -> None:
    item = taking.known.get(entry.own_id)
    try:
        check(entry, taking.queue, taking.media)
    except EntryError as error:
        taking.say(place, Took.REFUSED, item_id=item.pk if item else None, why=str(error))


def _find_recipients(taking: Taking) -> None:
    """Find the recipient of every entry, and add those that are new."""
    queue, region = taking.queue, region_of(taking.queue.owner)
    wanted: dict[int, tuple[str, str, str]] = {}
    for place, entry in list(taking.open()):
        if entry.recipient_id is not None:
            continue
        try:
            found = canonical(queue.channel, entry.address, region=region)
        except BadAddressError as error:
            taking.say(place, Took.REFUSED, why=str(error))
        else:
            wanted[place] = (found.text, found.kind, entry.name[:200].strip())
    by_address = _recipients_at(queue, list(wanted.values()))
    given = [entry.recipient_id for _, entry in taking.open() if entry.recipient_id is not None]
    by_id = Recipient.objects.filter(owner=queue.owner_id, channel=queue.channel).in_bulk(given)
    for place, entry in list(taking.open()):
        recipient = by_address[wanted[place][0]] if place in wanted else by_id.get(entry.recipient_id or 0)
        if recipient is None:
            taking.say(
                place, Took.REFUSED, why=f"There is no recipient {entry.recipient_id} on this channel."
            )
        else:
            taking.recipients[place] = recipient


def _recipients_at(queue: Queue, wanted: Sequence[tuple[str, str, str]]) -> dict[str, Recipient]:
    """Return the recipients with these addresses, kinds and names, in one order for all: two calls do not deadlock."""
    rows = Recipient.objects.filter(owner=queue.owner_id, channel=queue.channel)
    addresses = {address for address, _, _ in wanted}
    found = {each.address: each for each in rows.filter(address__in=addresses)}
    new = {address: (kind, name) for address, kind, name in reversed(wanted) if address not in found}
    if new:
        made = [
            Recipient(owner=queue.owner, channel=queue.channel, address=address, kind=kind, name=name)
            for address, (kind, name) in sorted(new.items())
        ]
        found |= {each.address: each for each in many_rows.insert(made, key="address", ignore_conflicts=True)}
        if lost := new.keys() - found.keys():  # somebody else added them in this moment
            found |= {each.address: each for each in rows.filter(address__in=lost)}
    return found


def _require_approval(taking: Taking) -> None:
    """Raise NotPossibleError where a second person has to approve first; items that come back count as new ones."""
    known = [taking.known.get(entry.own_id) for _, entry in taking.open()]
    back = sum(item is not None and item.withdrawn_at is not None for item in known)
    adding = known.count(None) + back
    approval.require(taking.queue, taking=len(known), adding=adding, back=back)


def _check_each(taking: Taking) -> None:
    """Refuse entries that lack a value for their recipient, or name an account that the queue does not have."""
    for place, entry in list(taking.open()):
        item = taking.known.get(entry.own_id)
        try:
            check_variables(entry, taking.queue, taking.recipients[place])
            check_sender(entry, taking.choice)
        except EntryError as error:
            taking.say(place, Took.REFUSED, item_id=item.pk if item else None, why=str(error))


def _change_known(taking: Taking, open_runs: OpenRuns) -> None:
    """Change the items that are known and have not begun; items that their source withdrew come back."""
    changed = {
        place: taking.known[entry.own_id] for place, entry in taking.open() if entry.own_id in taking.known
    }
    back = {place: item for place, item in changed.items() if item.withdrawn_at is not None}
    going = {place: item for place, item in changed.items() if place not in back}
    rows = Item.objects.filter(pk__in=[item.pk for item in going.values()]).select_related("target__run")
    now_there = {item.pk: item for item in rows}
    held = items.hold([item.target_id for item in now_there.values()], open_runs.runs)
    moving: list[Item] = []
    asked = {item.pk: item.account_id for item in now_there.values()}
    for place, known in going.items():
        item = now_there.get(known.pk)
        if item is None:  # it ended long ago, and its details were removed
            taking.say(place, Took.BEGUN, item_id=known.pk, why=BEGUN)
            continue
        item.given = taking.marks[place]
        if item.target_id in held:
            _apply(taking, place, item)
            moving.append(item)
            taking.say(place, Took.CHANGED, item_id=item.pk)
        else:
            item.late_change = BEGUN
            taking.say(place, Took.BEGUN, item_id=item.pk, why=BEGUN)
    many_rows.update(list(now_there.values()), CHANGED)
    items.write({item.target_id: _content(taking, taking.places[item.own_id]) for item in moving})
    _readdress(moving, held)
    items.replan({item.target_id: _not_before(taking.queue, item.planned_at) for item in moving})
    renamed = {item.pk for item in moving if item.account_id != asked[item.pk]}
    _settle_in(open_runs, moving, held, renamed=renamed, check_recipients=True)


CHANGED = (
    *("recipient", "account", "priority", "planned_at", "moved_why", "given", "late_change", "changed_at"),
    *("withdrawn_at", "withdrawn_by"),
)


def _apply(taking: Taking, place: int, item: Item) -> None:
    """Write into an item what an entry says."""
    entry = taking.entries[place]
    item.recipient, item.priority, item.planned_at = (
        taking.recipients[place],
        entry.priority,
        entry.planned_at,
    )
    item.account = taking.choice.named(entry.sender) if entry.sender else None
    item.given, item.late_change, item.moved_why = taking.marks[place], "", ""
    item.withdrawn_at, item.withdrawn_by, item.changed_at = None, "", timezone.now()


def _content(taking: Taking, place: int) -> Content:
    entry = taking.entries[place]
    parts = parts_of(entry, taking.media)
    subject = entry.subject or (taking.queue.subject if parts is not None else "")
    return Content(subject=subject, parts=parts, values=dict(entry.values))


def _readdress(moving: Sequence[Item], held: Mapping[int, RunTarget]) -> None:
    """Let targets go to other recipients, where their items say so."""
    for item in moving:
        if held[item.target_id].recipient_id != item.recipient_id:
            RunTarget.objects.filter(pk=item.target_id).update(recipient=item.recipient_id)


def _settle_in(
    open_runs: OpenRuns,
    moving: Sequence[Item],
    held: Mapping[int, RunTarget],
    *,
    renamed: Collection[int] = (),
    check_recipients: bool = False,
) -> None:
    """Move changed items to the runs that suit them, and skip those whose recipient must not get them.

    Only items that were given another sender just now (`renamed`), or whose form or priority changed, go to another
    run: an item that was handed over stays with its new account, whichever it asked for before.
    """
    queue, locks, forms = open_runs.queue, open_runs.runs, _forms(open_runs.queue, moving)
    by_account = {account.pk: account for account in _accounts(moving, held)}
    asked = {item.pk: item.account_id for item in moving if item.pk in renamed}
    going: dict[tuple[int, Form], dict[int, RunTarget]] = defaultdict(dict)
    refused: dict[str, dict[int, RunTarget]] = defaultdict(dict)
    for item in moving:
        target = held[item.target_id]
        account = by_account[asked.get(item.pk) or target.account_id]
        if check_recipients and (why := refusal(item.recipient, account)):
            refused[why][target.pk] = target
        elif account.pk != target.account_id or form_of(locks[target.run_id]) != (
            queue.priority + forms[item.pk].priority,
            forms[item.pk].kinds,
            forms[item.pk].planned,
        ):
            going[account.pk, forms[item.pk]][target.pk] = target
    for why, those in refused.items():
        items.withdraw(those, locks, why=why)
    for (account_id, form), those in going.items():
        run = open_runs.run_for(by_account[account_id], form)
        apart = {pk: target for pk, target in those.items() if target.run_id != run.pk}
        items.move(apart, locks, run, by_account[account_id])
    items.wake({held[item.target_id].run_id: locks[held[item.target_id].run_id] for item in moving}.values())


def _accounts(moving: Sequence[Item], held: Mapping[int, RunTarget]) -> list[Account]:
    wanted = {held[item.target_id].account_id for item in moving}
    wanted |= {item.account_id for item in moving if item.account_id is not None}
    return list(Account.objects.filter(pk__in=wanted).defer("credentials"))


def _forms(queue: Queue, moving: Sequence[Item]) -> dict[int, Form]:
    """Return the form of items by their ids, from what their targets say now."""
    contents = items.contents_of([item.target_id for item in moving])
    return {
        item.pk: _form(
            queue,
            item,
            None
            if (content := contents.get(item.target_id)) is None or content.parts is None
            else [part["kind"] for part in content.parts],
        )
        for item in moving
    }


def _form(queue: Queue, item: Item, kinds: Sequence[str] | None) -> Form:
    return Form(
        kinds=("text",) if kinds is None else tuple(kinds),
        priority=item.priority,
        planned=queue.pace == Queue.Pace.PLANNED,
        from_template=kinds is None,
    )


def _not_before(queue: Queue, planned_at: datetime | None) -> datetime:
    """Return the earliest time of a target. In a planned queue an item without a time leaves like an overdue one."""
    if queue.pace == Queue.Pace.STEADY:
        return timezone.now()
    return planned_at or overdue_before(conf.drain(), timezone.now()) - timedelta(seconds=1)


def _add_new(taking: Taking, open_runs: OpenRuns) -> None:
    """Add the entries that are left: their items, and targets in the runs of their accounts."""
    left = list(taking.open())
    if not left:
        return
    ids = items.reserve(len(left))
    items.part_with(
        [taking.known[entry.own_id].target_id for _, entry in left if entry.own_id in taking.known]
    )
    made: list[tuple[int, Item]] = []
    for (place, entry), target_id in zip(left, ids, strict=True):
        item = taking.known.get(entry.own_id) or Item(
            queue=taking.queue, source=taking.source, own_id=entry.own_id
        )
        _apply(taking, place, item)
        item.target_id = target_id
        made.append((place, item))
    new = [item for _, item in made if item.pk is None]
    taking_back = [item for _, item in made if item.pk is not None]
    for item in taking_back:
        item.added_at = timezone.now()
    for item in new:
        item.changed_at = None
    many_rows.insert(new, key="own_id")
    many_rows.update(taking_back, [*CHANGED, "target", "added_at"])
    for place, item in made:
        taking.say(place, Took.ADDED, item_id=item.pk)
    _into_runs(taking, made, open_runs)


def _into_runs(taking: Taking, made: Sequence[tuple[int, Item]], open_runs: OpenRuns) -> None:
    queue, groups = taking.queue, defaultdict[tuple[int, Form], list[NewTarget]](list)
    by_id = {account.pk: account for account in taking.choice.accounts}
    for place, item in made:
        account = by_id[item.account_id] if item.account_id else taking.choice.choose(item.recipient)
        content = _content(taking, place)
        kinds = None if uses_template(taking.entries[place]) else [p["kind"] for p in content.parts or ()]
        groups[account.pk, _form(queue, item, kinds)].append(
            NewTarget(
                target_id=item.target_id,
                item_id=item.pk,
                recipient_id=item.recipient_id,
                not_before=_not_before(queue, item.planned_at),
                content=content,
                refused=refusal(item.recipient, account),
            )
        )
    for (account_id, form), targets in sorted(groups.items(), key=lambda each: each[0][0]):
        run = open_runs.run_for(by_id[account_id], form)
        items.add(run, by_id[account_id], targets, paused=queue.paused_at is not None)
