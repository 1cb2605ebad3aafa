"""The approval of a queue as a whole: its text, accounts and hours.

Above the owner's number of new items within a day, and from accounts that are marked, it takes no more until a second
person has approved it.
"""

import hashlib
import json
from datetime import timedelta

from django.db import transaction
from django.utils import timezone

from accounts.approvals import needs, rules
from accounts.approvals.requests import Wanted, ask
from accounts.models import Account, Approval, User
from queues.models import Item, Queue
from reminders.drafts import NotPossibleError

WITHIN = timedelta(days=1)
SETTINGS = (
    *("pace", "subject", "text", "channel", "action", "zone"),
    *("window_start_hour", "window_end_hour", "send_days"),
)
Kind = Approval.Kind


def content_of(queue: Queue) -> str:
    """Return the fingerprint of what is approved."""
    accounts = list(queue.queue_accounts.order_by("position", "pk").values_list("account_id", flat=True))
    said = [[str(getattr(queue, name)) for name in SETTINGS], accounts]
    return hashlib.sha256(json.dumps(said).encode()).hexdigest()[:32]


def is_approved(queue: Queue) -> bool:
    return needs.is_approved(queue.carrier_id, [Kind.QUEUE], content=content_of(queue))


def waiting(queue: Queue) -> Approval | None:
    return Approval.objects.waiting().filter(reminder=queue.carrier_id, kind=Kind.QUEUE).first()


def require(queue: Queue, *, taking: int, adding: int, back: int = 0) -> None:
    """Raise NotPossibleError where a second person has to approve the queue first.

    It would take so many entries, of which `adding` are new items; `back` of these were withdrawn before.
    """
    if not taking:
        return
    above = needs.number_of(queue.owner_id)
    why = rules.why_needed(0, above=None, marked=_marked(queue)) or _too_many(queue, adding, back, above)
    if why and not is_approved(queue):
        raise NotPossibleError(f"{why} Ask for approval on the page of the queue; nothing of this was taken.")


def why_needed(queue: Queue) -> str:
    """Return when the queue needs a second person, in a sentence; empty where it never does."""
    if marked := _marked(queue):
        return rules.why_needed(0, above=None, marked=marked)
    above = needs.number_of(queue.owner_id)
    return f"More than {above:,} new items within a day need approval." if above is not None else ""


@transaction.atomic
def ask_for(queue: Queue, *, by: User) -> Approval:
    """Ask a second person to approve the queue. The caller holds its lock."""
    why = why_needed(queue)
    if not why:
        raise NotPossibleError(f"{queue} needs no approval.")
    if is_approved(queue):
        raise NotPossibleError(f"{queue} is approved as it is.")
    wanted = Wanted(
        owner_id=queue.owner_id,
        kind=Kind.QUEUE,
        title=str(queue),
        why=why,
        content=content_of(queue),
        reminder_id=queue.carrier_id,
    )
    return ask(wanted, by=by)


def _too_many(queue: Queue, adding: int, back: int, above: int | None) -> str:
    """Return why, where these items would be too many within a day: looks at one item, by its place.

    Items that come back have an old place: where there are some, or that one is of today, all are counted.
    """
    if above is None or not adding:
        return ""
    room, since = above - adding, timezone.now() - WITHIN
    items = Item.objects.filter(queue=queue)
    newest = items.order_by("-pk").values_list("added_at", flat=True)
    if room >= 0 and not back and not any(at > since for at in newest[room : room + 1]):
        return ""
    if room < 0 or items.filter(added_at__gt=since).count() > room:
        return f"More than {above:,} new items within a day need approval."
    return ""


def _marked(queue: Queue) -> list[str]:
    rows = Account.objects.filter(queue_accounts__queue=queue, needs_approval=True)
    return list(rows.order_by("name").values_list("name", flat=True))
