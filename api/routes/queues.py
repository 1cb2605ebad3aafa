"""Queues: the list, their items, and what programs add, change, plan and withdraw."""

from collections.abc import Sequence

from django.http import HttpRequest
from django.shortcuts import get_object_or_404
from django.utils import timezone
from ninja import Path, Query, Router

from accounts.models import Role
from accounts.roles import visible
from api.access import READ, SEND, STEER, person_of
from api.paging import page
from api.problems import refusal
from api.routes.rows import seen, touched
from api.schemas.base import Id, Page
from api.schemas.queues import (
    Confirmed,
    ItemGiven,
    ItemsAsked,
    ItemsChosen,
    ItemsDone,
    ItemsGiven,
    ItemShown,
    ItemsPlanned,
    ItemsTaken,
    ItemTaken,
    ItemWhole,
    QueuesAsked,
    QueueShown,
    QueueVerb,
)
from delivery.models import Run
from queues import actions, steering
from queues.entries import Entry
from queues.models import Item, Queue
from queues.states import ItemState, condition, with_state
from reminders.drafts import NotPossibleError

router = Router(tags=["Queues"])
SOURCE = "api"


@router.get("", response=Page[QueueShown], auth=READ)
def list_queues(request: HttpRequest, asked: Query[QueuesAsked]) -> Page[QueueShown]:
    """Return the queues, the newest first."""
    rows = visible(Queue.objects.all(), person_of(request)).filter(archived_at__isnull=not asked.archived)
    return page(rows.prefetch_related("queue_accounts"), asked, _queues, newest_first=True)


@router.get("/{int:pk}", response=QueueShown, auth=READ)
def show_queue(request: HttpRequest, pk: Path[Id]) -> QueueShown:
    """Return one queue."""
    return _queues([seen(Queue.objects.all(), request, pk)])[0]


@router.get("/{int:pk}/items", response=Page[ItemShown], auth=READ)
def list_items(request: HttpRequest, pk: Path[Id], asked: Query[ItemsAsked]) -> Page[ItemShown]:
    """Return the items of a queue, the newest first, each with its state and the reason for it."""
    queue = seen(Queue.objects.all(), request, pk)
    rows = Item.objects.filter(queue=queue)
    if asked.state is not None:
        rows = rows.filter(condition(ItemState(asked.state), timezone.now()))
    if asked.own_id:
        rows = rows.filter(own_id=asked.own_id)
    shown = with_state(rows.select_related("recipient", "target"))
    return page(shown, asked, _items, newest_first=True)


@router.get("/{int:pk}/items/{int:item}", response=ItemWhole, auth=READ)
def show_item(request: HttpRequest, pk: Path[Id], item: Path[Id]) -> ItemWhole:
    """Return one item with what it says, how it goes, and why its time moved if it did."""
    queue = seen(Queue.objects.all(), request, pk)
    rows = with_state(Item.objects.filter(queue=queue).select_related("recipient", "target__content"))
    return _whole(get_object_or_404(rows, pk=item))


@router.post("/{int:pk}/items", response=ItemsTaken, auth=SEND)
def give_items(request: HttpRequest, pk: Path[Id], body: ItemsGiven) -> ItemsTaken:
    """Add items, or change those whose own id is known and that have not begun.

    Equal items change nothing, so a call may be repeated. A wrong item is refused with its reason, and stops no other.
    """
    queue = touched(Queue.objects.all(), request, pk, Role.SEND)
    try:
        results = actions.put(
            queue, [_entry(given) for given in body.items], source=SOURCE, by=person_of(request)
        )
    except NotPossibleError as error:
        raise refusal(409, "wrong-state", str(error)) from error
    return ItemsTaken(
        results=[
            ItemTaken(own_id=each.own_id, result=each.took.value, item=each.item_id, why=each.why)
            for each in results
        ]
    )


@router.post("/{int:pk}/items/withdraw", response=ItemsDone, auth=SEND)
def withdraw_items(request: HttpRequest, pk: Path[Id], body: ItemsChosen) -> ItemsDone:
    """Withdraw items that have not begun; the others stay and are counted."""
    queue = touched(Queue.objects.all(), request, pk, Role.SEND)
    done = actions.withdraw(queue, item_ids=_ids(queue, body), by=person_of(request))
    return ItemsDone(done=done.done, begun=done.begun)


@router.post("/{int:pk}/items/plan", response=ItemsDone, auth=SEND)
def plan_items(request: HttpRequest, pk: Path[Id], body: ItemsPlanned) -> ItemsDone:
    """Give items that have not begun another planned time, or none."""
    queue = touched(Queue.objects.all(), request, pk, Role.SEND)
    done = actions.replan(
        queue, item_ids=_ids(queue, body), planned_at=body.planned_at, by=person_of(request)
    )
    return ItemsDone(done=done.done, begun=done.begun)


@router.post("/{int:pk}/{verb}", response=QueueShown, auth=STEER)
def act_on_queue(
    request: HttpRequest, pk: Path[Id], verb: Path[QueueVerb], body: Confirmed | None = None
) -> QueueShown:
    """Pause or resume a queue, or cancel all its items that have not left, which has to be confirmed.

    Or ask a second person to approve the queue, where it needs that: see /approvals.
    """
    queue, by = touched(Queue.objects.all(), request, pk, Role.SEND), person_of(request)
    if verb == "cancel" and not (body and body.confirmed):
        left = _queues([queue])[0].to_send
        question = f"{left:,} items will not be sent. Send it again with confirmed."
        raise refusal(409, "confirmation-needed", question, extra={"pending": left})
    try:
        if verb == "pause":
            steering.pause(queue, by=by)
        elif verb == "resume":
            steering.resume(queue, by=by)
        elif verb == "ask-approval":
            steering.ask_approval(queue, by=by)
        else:
            steering.cancel(queue, by=by)
    except NotPossibleError as error:
        raise refusal(409, "wrong-state", str(error)) from error
    return show_queue(request, pk)


def _ids(queue: Queue, body: ItemsChosen) -> list[int]:
    """Return the ids of the items that were named in either way."""
    if not body.own_ids:
        return body.items
    rows = Item.objects.filter(queue=queue, source=SOURCE, own_id__in=body.own_ids)
    return [*body.items, *rows.values_list("pk", flat=True)]


def _entry(given: ItemGiven) -> Entry:
    return Entry(
        own_id=given.own_id,
        address=given.address,
        recipient_id=given.recipient,
        name=given.name,
        subject=given.subject,
        text=given.text,
        values=given.values,
        media=given.media,
        planned_at=given.planned_at,
        sender=given.sender,
        priority=given.priority,
    )


def _queues(found: Sequence[Queue]) -> list[QueueShown]:
    left: dict[int, int] = {}
    runs = Run.objects.open().filter(reminder__in=[queue.carrier_id for queue in found])
    for carrier, pending, sending in runs.values_list("reminder_id", "pending", "sending"):
        left[carrier] = left.get(carrier, 0) + pending + sending
    return [
        QueueShown(
            id=queue.pk,
            owner=queue.owner_id,
            name=queue.name,
            channel=queue.channel,
            pace="planned" if queue.pace == Queue.Pace.PLANNED else "steady",
            accounts=[share.account_id for share in queue.queue_accounts.all()],
            zone=queue.zone,
            window_start_hour=queue.window_start_hour,
            window_end_hour=queue.window_end_hour,
            paused_at=queue.paused_at,
            archived_at=queue.archived_at,
            to_send=left.get(queue.carrier_id, 0),
        )
        for queue in found
    ]


def _whole(item: Item) -> ItemWhole:
    content = getattr(item.target, "content", None)  # removed with its details, long after it ended
    parts = content.parts or [] if content is not None else []
    return ItemWhole(
        **_items([item])[0].model_dump(),
        subject=content.subject if content is not None else "",
        text=next((part["text"] for part in parts if part.get("text")), ""),
        media=[part.get("filename", "") for part in parts if part["kind"] == "media"],
        values=content.values if content is not None else {},
        priority=item.priority,
        moved_why=item.moved_why,
        replied_at=item.replied_at,  # type: ignore[attr-defined] # annotations of `with_state`
        reply=item.reply or "",  # type: ignore[attr-defined]
    )


def _items(found: Sequence[Item]) -> list[ItemShown]:
    return [
        ItemShown(
            id=item.pk,
            own_id=item.own_id,
            source=item.source,
            recipient=item.recipient_id,
            address=item.recipient.address,
            account=item.target.account_id,
            state=item.state,  # type: ignore[attr-defined] # annotations of `with_state`
            planned_at=item.planned_at,
            planned_for=item.planned_for,  # type: ignore[attr-defined]
            sent_at=item.sent_at,  # type: ignore[attr-defined]
            why=item.why or "",  # type: ignore[attr-defined]
            run=item.target.run_id,
            target=item.target_id,
        )
        for item in found
    ]
