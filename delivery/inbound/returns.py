"""Takes late failures: bounces, complaints and reports that a message failed after its service took it (SPEC L1, L4).

One function for all transports. Reports of one message may come in any order, any number of times, and before the
answer to its send: they are merged on the target whatever its status is, and the target counts as returned from the
moment it is sent (`engine/recording.py` and `lifecycle/people.py` count those that are sent later).

Locks are taken in the order that replies have: the recipients, their runs, then the targets.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

from django.conf import settings
from django.db import transaction

from accounts.models import Account, ConsentChange, Recipient
from accounts.recipients import consent, undeliverable
from activity import counters
from activity.models import Inbound
from activity.storable import storable
from delivery import lifecycle, live, notifications
from delivery.health import counts
from delivery.inbound.returned import Returned, stands_out, worse
from delivery.lifecycle import events
from delivery.models import Run, RunTarget
from delivery.sentences import run_summary
from delivery.states import SETTLED_RUN, ReturnKind, RunStatus, TargetStatus
from delivery.transports.base import ReceiptState

KINDS: Mapping[str, ReturnKind] = {
    ReceiptState.FAILED: ReturnKind.TEMPORARY,
    ReceiptState.BOUNCED: ReturnKind.PERMANENT,
    ReceiptState.COMPLAINED: ReturnKind.COMPLAINT,
}
WORTH_TELLING = 3  # messages that came back; fewer of a small run are no news
Move = ConsentChange.Move
COMPLAINED = "reported a message as unwanted"
TOLD = frozenset({TargetStatus.SENT, TargetStatus.UNCONFIRMED})  # the others are told once they have a result
NOT_TAKEN = frozenset({TargetStatus.FAILED, TargetStatus.SKIPPED})
FIELDS = ("returned_at", "return_kind", "return_reason")

Found = tuple[Inbound, int]  # a report, and the target that it is about


def is_late(row: Inbound) -> bool:
    """Return whether a receipt reports a failure."""
    return row.state in KINDS


def lock(found: Sequence[Found]) -> None:
    """Lock what the reports change, until the transaction ends; before any of their targets is locked."""
    targets = RunTarget.objects.filter(pk__in={target for _, target in found})
    ids = list(targets.values_list("recipient_id", "run_id"))
    for rows, keys in (
        (Recipient.objects.all(), {recipient for recipient, _ in ids}),
        (Run.objects.all(), {run for _, run in ids}),
    ):
        list(rows.filter(pk__in=keys).select_for_update(no_key=True).order_by("pk").values_list("pk"))


def apply(account: Account, found: Sequence[Found]) -> None:
    """Note the reports on their targets, count them in the runs, and keep the addresses from which nothing comes."""
    told = _merged(found)
    if not told:
        return
    targets = list(RunTarget.objects.filter(pk__in=told).select_for_update(no_key=True).order_by("pk"))
    # A target that failed at once is counted already.
    first = [target for target in targets if target.returned_at is None and target.status not in NOT_TAKEN]
    new = [target for target in first if target.status == TargetStatus.SENT]
    worse_now = [target for target in targets if _note(target, told[target.pk])]
    RunTarget.objects.bulk_update(targets, FIELDS)
    for target in worse_now:
        _keep_from(account, target)
    told_before = [target.pk for target in worse_now if target.status in TOLD]
    events.results_changed(RunTarget.objects.filter(pk__in=told_before))
    _count(Counter(target.run_id for target in new))
    complaints = sum(target.return_kind == ReturnKind.COMPLAINT for target in worse_now)
    counts.note(account, returned=len(first), complained=complaints)
    for kind, number in Counter(target.return_kind for target in new).items():
        counters.tell("messages_returned", reason=kind, number=number, account=account.pk)


def _merged(found: Sequence[Found]) -> dict[int, Returned]:
    told: dict[int, Returned] = {}
    for row, target in found:
        one = Returned(at=row.at, kind=KINDS[row.state], reason=storable(row.text, 500))
        told[target] = worse(told.get(target), one)
    return told


def _note(target: RunTarget, told: Returned) -> bool:
    """Merge a report into what the target knows; return whether its kind is another one now."""
    known, before = None, target.return_kind
    if target.returned_at is not None:
        kind = ReturnKind(target.return_kind)
        known = Returned(at=target.returned_at, kind=kind, reason=target.return_reason)
    both = worse(known, told)
    target.returned_at, target.return_kind, target.return_reason = both.at, both.kind, both.reason
    return target.return_kind != before


def _keep_from(account: Account, target: RunTarget) -> None:
    """Send nothing more to an address that is gone, or to a person who complained.

    A report about a message from before they wrote to us, or before a person lifted the mark, tells nothing new.
    """
    recipient = Recipient.objects.get(pk=target.recipient_id)
    if target.return_kind == ReturnKind.PERMANENT and not _lifted_since(target, recipient, Move.ALIVE):
        source = f"report to {account}, run {target.run_id}"
        undeliverable.mark(recipient.pk, reason=target.return_reason, source=source)
    elif target.return_kind == ReturnKind.COMPLAINT and not _lifted_since(target, recipient, Move.IN):
        consent.opt_out(recipient, how=COMPLAINED)


def refused(account: Account, reasons: Mapping[int, str]) -> None:
    """Mark the recipients of these targets: the service said in its answer that it knows nobody there."""
    for target_id, recipient_id in RunTarget.objects.filter(pk__in=reasons).values_list("pk", "recipient_id"):
        undeliverable.mark(recipient_id, reason=reasons[target_id], source=f"answer to {account}")


def _lifted_since(target: RunTarget, recipient: Recipient, move: ConsentChange.Move) -> bool:
    """Return whether the recipient wrote, or the change was made, after the message was sent."""
    sent_at = target.settled_at
    if sent_at is None:
        return False
    wrote_at = recipient.last_inbound_at if move is Move.ALIVE else None
    if wrote_at is not None and wrote_at > sent_at:
        return True
    return ConsentChange.objects.filter(recipient=recipient, move=move, at__gt=sent_at).exists()


def _count(returned: Mapping[int, int]) -> None:
    """Count messages that came back in their runs, and do what follows from it once that is committed."""
    for run_id, number in sorted(returned.items()):
        run = Run.objects.get(pk=run_id)  # locked before
        tells_counts = run.status in SETTLED_RUN and run.summary == run_summary.finished(run)
        run.returned += number
        run.summary = run_summary.finished(run) if tells_counts else run.summary
        run.save(update_fields=["returned", "summary"])
        transaction.on_commit(lambda run_id=run_id: follow_up_on(run_id))  # type: ignore[misc]


def follow_up_on(run_id: int) -> None:
    """Pause a run whose messages come back, or tell the owner of one that has ended."""
    run = Run.objects.get(pk=run_id)
    live.run_changed(run.pk, run.owner_id)
    if run.status == RunStatus.RUNNING:
        lifecycle.trip(run.pk)
    elif run.status in SETTLED_RUN and stands_out(
        sent=run.sent,
        returned=run.returned,
        share=settings.ERROR_RATE_SLOW,
        at_least=WORTH_TELLING,
    ):
        notifications.messages_returned(run)
