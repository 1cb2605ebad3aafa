"""Tells webhooks the results of a run's recipients, in batches, without a row in the engine's own transactions.

The engine writes a result and its row of the ledger in one statement that first locks the run (`RECORD`). So the
ledger's ids of one run are in the order of their commits: whoever reads the rows of a run behind the last id that was
told misses none, however many workers write. Two kinds of results are not found like that, and are told once the run
has ended: recipients that were skipped have no row, and the rescue of a dead worker's messages, which leaves them
unconfirmed, locks the run last.
"""

from collections.abc import Sequence

from django.db import transaction
from django.db.models import Exists, OuterRef, Q

from accounts import outbox
from accounts.models import Delivery, ResultFeed
from accounts.models.webhook import EventType
from activity.models import Attempt
from delivery.lifecycle import item_events
from delivery.lifecycle.events import result_of, sequence_of
from delivery.lifecycle.item_events import BATCH
from delivery.models import RunTarget
from delivery.states import SETTLED_RUN, TargetStatus

MOST_FEEDS = 200  # in one round
WAITING = 20  # batches of one webhook that wait before more are made: the outbox stays small
SETTLED = (TargetStatus.SENT, TargetStatus.FAILED, TargetStatus.UNCONFIRMED, TargetStatus.SKIPPED)
# Runs that wait for days, as paused ones, must not take the places of those that send.
_HAS_MORE = Q(run__status__in=SETTLED_RUN) | Exists(
    Attempt.objects.filter(run=OuterRef("run"), pk__gt=OuterRef("last_attempt"))
)


def collect() -> int:
    """Make one batch for each run that has something to tell; return how many were made."""
    feeds = ResultFeed.objects.filter(_HAS_MORE, done=False, webhook__switched_off_at=None)
    feeds = feeds.filter(webhook__owner__is_active=True)
    return sum(_collect(pk) for pk in list(feeds.order_by("id").values_list("pk", flat=True)[:MOST_FEEDS]))


@transaction.atomic
def _collect(feed_id: int) -> bool:
    locked = ResultFeed.objects.select_for_update(skip_locked=True, of=("self",))
    feed = locked.select_related("webhook", "run").filter(pk=feed_id, done=False).first()
    if feed is None or _is_behind(feed):
        return False
    settled = (
        feed.run.status in SETTLED_RUN
    )  # read before the ledger: then nothing follows what is read there
    rows = Attempt.objects.filter(run=feed.run_id, pk__gt=feed.last_attempt).order_by("pk")
    attempts = list(rows.values_list("pk", "target_id")[:BATCH])
    if attempts:
        feed.last_attempt = attempts[-1][0]
        told = _tell(feed, [target_id for _, target_id in attempts if target_id])
    elif settled:
        told = _rest(feed, TargetStatus.SKIPPED, "last_skipped")
        told = told or _rest(feed, TargetStatus.UNCONFIRMED, "last_unconfirmed")
        feed.done = not told
    else:
        return False
    feed.save(update_fields=["last_attempt", "last_skipped", "last_unconfirmed", "done"])
    return told


def _is_behind(feed: ResultFeed) -> bool:
    """Return whether the receiver is so slow that more would only wait; a feed loses nothing by waiting."""
    waiting = Delivery.objects.filter(webhook=feed.webhook_id, state=Delivery.State.PENDING)
    return waiting.filter(sequence=sequence_of(feed.run_id))[: WAITING + 1].count() > WAITING


def _rest(feed: ResultFeed, status: TargetStatus, place: str) -> bool:
    """Tell the next targets of this status, behind the one that the feed remembers."""
    rows = RunTarget.objects.filter(run=feed.run_id, status=status, pk__gt=getattr(feed, place))
    ids = list(rows.order_by("pk").values_list("pk", flat=True)[:BATCH])
    if ids:
        setattr(feed, place, ids[-1])
    return _tell(feed, ids)


def _tell(feed: ResultFeed, target_ids: Sequence[int]) -> bool:
    """Write one event with the present results of these targets; those without a result yet are left out."""
    rows = RunTarget.objects.filter(pk__in=set(target_ids), status__in=SETTLED).prefetch_related("recipient")
    targets = list(rows.select_related("item").order_by("pk"))
    if not targets:
        return False
    if EventType.RUN_TARGETS in feed.webhook.events:
        data = {"run": feed.run_id, "targets": [result_of(target) for target in targets]}
        outbox.emit_to(feed.webhook_id, EventType.RUN_TARGETS, data, sequence=sequence_of(feed.run_id))
    if EventType.ITEMS in feed.webhook.events:
        _tell_items(feed, targets)
    return True


def _tell_items(feed: ResultFeed, targets: Sequence[RunTarget]) -> None:
    """Tell the same results once more as those of items, by the ids that their sources know."""
    if theirs := [target for target in targets if target.item_id and hasattr(target, "item")]:
        sequence = item_events.sequence_of(theirs[0].item.queue_id)
        outbox.emit_to(feed.webhook_id, EventType.ITEMS, item_events.data_of(theirs), sequence=sequence)
