"""Steers a whole queue: makes it, changes its settings, pauses, resumes, cancels and archives it."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.utils import timezone

from accounts.models import Account, Approval, Role, User
from accounts.roles import owners_for
from audit.record import record
from delivery import lifecycle
from delivery.models import Run
from delivery.states import IllegalMoveError, PauseReason, RunStatus
from queues import approval
from queues.actions import locked
from queues.models import Queue, QueueAccount
from queues.runs import runs_of
from reminders.drafts import ACTIONS, NotPossibleError
from reminders.models import Reminder

SETTINGS = (
    *("name", "pace", "subject", "text", "zone", "window_start_hour", "window_end_hour", "send_days"),
    "priority",
)


@transaction.atomic
def create(owner: User, *, accounts: Sequence[Account], by: User, settings: Mapping[str, Any]) -> Queue:
    """Return a new queue of `owner` that sends from these accounts, all on one channel."""
    if not owners_for(by, Role.SEND).filter(pk=owner.pk).exists():
        raise PermissionDenied("You may not add anything for this owner. Ask them to make you an operator.")
    channel = _channel(owner, accounts)
    action = ACTIONS[channel][0]
    carrier = Reminder.objects.create(
        owner=owner,
        name=settings["name"],
        status=Reminder.Status.OFF,
        channel=channel,
        action=action,
        schedule=Reminder.Schedule.BY_HAND,
        carries_queue=True,
        archived_at=timezone.now(),
    )
    queue = Queue(owner=owner, channel=channel, action=action, carrier=carrier, **settings)
    queue.full_clean(exclude=["carrier"])
    queue.save()
    _set_accounts(queue, accounts)
    record("queue.added", queue, by=by)
    return queue


@transaction.atomic
def change(
    queue: Queue, *, accounts: Sequence[Account], by: User | None, settings: Mapping[str, Any]
) -> Queue:
    """Change the settings of a queue. Delivery hours hold for all its items; a text for those added from now on."""
    queue = locked(queue, by)
    if _channel(queue.owner, accounts) != queue.channel:
        raise NotPossibleError(
            f"{queue} sends by {queue.get_channel_display()}: choose accounts of this channel."
        )
    before = {name: getattr(queue, name) for name in SETTINGS}
    for name in SETTINGS:
        setattr(queue, name, settings.get(name, getattr(queue, name)))
    queue.full_clean(exclude=["carrier"])
    queue.save(update_fields=SETTINGS)
    Reminder.objects.filter(pk=queue.carrier_id).update(name=queue.name)
    _set_accounts(queue, accounts)
    _change_hours(queue)
    after = {name: getattr(queue, name) for name in SETTINGS}
    record("queue.changed", queue, by=by, before=before, after=after)
    return queue


@transaction.atomic
def pause(queue: Queue, *, by: User | None) -> Queue:
    """Pause a queue: nothing more leaves until a person resumes it, also of items that are added meanwhile."""
    queue = locked(queue, by)
    if queue.paused_at is not None:
        raise NotPossibleError(f"{queue} is paused already.")
    queue.paused_at = timezone.now()
    queue.save(update_fields=["paused_at"])
    for run in _open(queue):
        if run.status != RunStatus.PAUSED or run.goes_on_by_itself:
            lifecycle.pause(run, reason=PauseReason.OPERATOR, by=by, detail="Its queue is paused.")
    record("queue.paused", queue, by=by)
    return queue


@transaction.atomic
def resume(queue: Queue, *, by: User | None) -> tuple[Queue, list[str]]:
    """Resume a queue; return it, and why some of its runs cannot continue."""
    queue = locked(queue, by)
    queue.paused_at = None
    queue.save(update_fields=["paused_at"])
    record("queue.resumed", queue, by=by)
    refusals = []
    for run in _open(queue):
        if run.status == RunStatus.PAUSED:
            try:
                lifecycle.resume(run, by=by)
            except IllegalMoveError as error:
                refusals.append(str(error))
    return queue, refusals


@transaction.atomic
def ask_approval(queue: Queue, *, by: User) -> Approval:
    """Ask a second person to approve the queue as it is."""
    return approval.ask_for(locked(queue, by), by=by)


@transaction.atomic
def cancel(queue: Queue, *, by: User | None) -> int:
    """Cancel all items that have not left; return how many runs were canceled. Items that are added later are sent."""
    queue = locked(queue, by)
    runs = _open(queue)
    for run in runs:
        lifecycle.cancel(run, by=by)
    record("queue.canceled", queue, by=by)
    return len(runs)


@transaction.atomic
def archive(queue: Queue, *, by: User | None) -> Queue:
    queue = locked(queue, by)
    if runs_of(queue).open().exists():
        raise NotPossibleError(f"{queue} still has items to send. Wait for them, or cancel them first.")
    queue.archived_at = queue.archived_at or timezone.now()
    queue.save(update_fields=["archived_at"])
    record("queue.archived", queue, by=by)
    return queue


@transaction.atomic
def unarchive(queue: Queue, *, by: User | None) -> Queue:
    queue = locked(queue, by)
    queue.archived_at = None
    queue.save(update_fields=["archived_at"])
    record("queue.unarchived", queue, by=by)
    return queue


def _open(queue: Queue) -> list[Run]:
    return list(runs_of(queue).open().filter(canceled_at=None).order_by("pk"))


def _channel(owner: User, accounts: Sequence[Account]) -> str:
    if not accounts:
        raise NotPossibleError("Choose at least one account to send from.")
    if any(account.owner_id != owner.pk for account in accounts):
        raise NotPossibleError("All accounts of a queue belong to its owner. Choose others.")
    channels = {account.channel for account in accounts}
    if len(channels) > 1:
        raise NotPossibleError("All accounts of a queue are on one channel. Choose those of one.")
    return channels.pop()


def _set_accounts(queue: Queue, accounts: Sequence[Account]) -> None:
    """Save the accounts in their order. Items that wait at an account that is taken out are still sent from there."""
    queue.queue_accounts.exclude(account__in=accounts).delete()
    for position, account in enumerate(accounts):
        QueueAccount.objects.update_or_create(queue=queue, account=account, defaults={"position": position})


def _change_hours(queue: Queue) -> None:
    """Let the open runs keep the delivery hours and days of their queue from now on."""
    same: dict[str, Any] = {
        "zone": queue.zone,
        "window_start_hour": queue.window_start_hour,
        "window_end_hour": queue.window_end_hour,
        "send_days": queue.send_days,
    }
    for run in _open(queue):
        if any(getattr(run, name) != value for name, value in same.items()):
            lifecycle.change_window(run, **same)
