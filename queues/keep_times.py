"""Moves planned times that cannot be kept, before they are due, and says why (SPEC Q2).

The times of an account are looked through in their order: each item takes a place that the delivery hours, the daily
and hourly limits and the gap between messages allow. Where that is later than planned, the item gets the later time.
Times are moved later and never earlier: a person who raises a limit plans the items again.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import structlog
from django.conf import settings
from django.db import connection, transaction
from django.db.models import Count, Q
from django.utils import timezone

from accounts.models import Account
from activity.components.times import until
from delivery import conf
from delivery.items import items_changed
from delivery.lifecycle import window_of
from delivery.models import Run, RunQuerySet, RunTarget
from delivery.pacing import Limits, usual_gap
from delivery.planning import workload
from delivery.planning.diary import Diary, NoRoomError
from delivery.planning.values import Allowance
from delivery.states import TargetStatus
from delivery.window import opens_at
from queues.models import Item

log = structlog.get_logger(__name__)

AHEAD = timedelta(days=7)  # how far ahead times are looked through
MOST = 2_000  # items of one account in one pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """An item that moves: its target, its time before and its new one, and why."""

    target_id: int
    before: datetime
    at: datetime
    why: str


def keep_times(*, now: datetime | None = None) -> int:
    """Move planned times that cannot be kept, for all accounts; return how many."""
    now = now or timezone.now()
    runs = Run.objects.going().filter(kind=Run.Kind.QUEUE, on_time_first=True)
    accounts = Account.objects.filter(run_accounts__run__in=runs, run_accounts__open=True).distinct()
    moved = 0
    for account in accounts.defer("credentials").order_by("pk"):
        try:
            moved += keep(account, now=now)
        except Exception:  # an error keeps no other account waiting
            log.exception("times_not_kept", account=account.pk)
    return moved


@transaction.atomic
def keep(account: Account, *, now: datetime) -> int:
    """Move the planned times of one account that cannot be kept; return how many."""
    moved = 0
    for action in ("message", "email", "connection_request", "inmail"):
        targets = _planned(account, action, now)
        if targets:
            moved += _write(list(_moves(account, action, targets, now)))
    return moved


def _planned(account: Account, action: str, now: datetime) -> list[RunTarget]:
    rows = RunTarget.objects.filter(
        account=account,
        run__in=_runs(account, action),
        status=TargetStatus.PENDING,
        not_before__gt=now,
        not_before__lte=now + AHEAD,
    )
    return list(rows.select_related("run").order_by("not_before", "pk")[:MOST])


def _moves(account: Account, action: str, targets: Sequence[RunTarget], now: datetime) -> Iterator[Moved]:
    """Yield the items that have to move, in their order."""
    places = _Places(account, _allowance(account, action, now), now)
    places.take_due(_due(account, action, now))
    for target in targets:
        try:
            at = places.take(target)
        except NoRoomError:
            return
        if at > target.not_before + conf.drain().on_time:
            yield Moved(target_id=target.pk, before=target.not_before, at=at, why=places.why(target, at, now))


def _due(account: Account, action: str, now: datetime) -> list[tuple[Run, int]]:
    """Return the runs of queues that have items due at the account, with how many: they go before planned ones."""
    due = Q(targets__account=account, targets__status=TargetStatus.PENDING, targets__not_before__lte=now)
    runs = _runs(account, action).annotate(due=Count("targets", filter=due))
    return [(run, run.due) for run in runs if run.due]  # type: ignore[attr-defined] # an annotation


def _runs(account: Account, action: str) -> RunQuerySet:
    return Run.objects.going().filter(
        run_accounts__account=account, run_accounts__open=True, on_time_first=True, action=action
    )


def _allowance(account: Account, action: str, now: datetime) -> Allowance:
    """Return what is left of the limits of an account, besides what other runs have planned."""
    others = [share for share in workload.shares_of([account], now=now) if not share.run.on_time_first]
    found = workload.allowances([account], {account.pk: [action]}, {account.pk: others}, now=now)
    return found[account.pk, action]


class _Places:
    """The places for the messages of one account, taken one after the other."""

    def __init__(self, account: Account, allowance: Allowance, now: datetime) -> None:
        self.account, self.now = account, now
        self.allowance = allowance
        self.limits: Limits = allowance.limits
        self.diary = Diary(zone=account.zone, now=now, room=allowance.room)
        self.taken: list[datetime] = []
        scale = settings.MINUTE_SECONDS / 60
        self.gap = timedelta(seconds=usual_gap(self.limits) * account.slowness * scale)
        self.hour = timedelta(hours=1) * scale

    def take_due(self, due: Sequence[tuple[Run, int]]) -> None:
        """Leave room on the days for items that are due already."""
        for run, number in due:
            parts = max(1, len(run.parts))
            self.diary.openings(window_of(run), parts=parts, targets=number, after=self.now)

    def take(self, target: RunTarget) -> datetime:
        """Return when a target can leave, from its planned time on; its place is taken then."""
        at = target.not_before
        if self.taken:
            at = max(at, self.taken[-1] + self.gap)
        cap = self.limits.per_hour
        if cap is not None and len(self.taken) >= cap:
            at = max(at, self.taken[-cap] + self.hour)
        parts = max(1, len(target.run.parts))
        (slot,) = self.diary.openings(window_of(target.run), parts=parts, targets=1, after=at)
        self.taken += [slot.at] * parts
        return slot.at

    def why(self, target: RunTarget, at: datetime, now: datetime) -> str:
        """Return why a target leaves later than planned, as a sentence."""
        zone = ZoneInfo(target.run.zone)
        asked = until(target.not_before, zone, now)
        opening = opens_at(window_of(target.run), target.not_before)
        if opening > target.not_before and at < opening + self.hour:
            return f"Planned for {asked}, which is outside the delivery hours."
        if at.astimezone(zone).date() > target.not_before.astimezone(zone).date():
            cap = self.limits.per_day
            full = f"can send {cap:,} messages per day" if cap is not None else "has no room left on that day"
            return f"Planned for {asked}, but {self.account} {full}."
        return f"Planned for {asked}, but {self.account} has others to send at that time."


MOVE = """
WITH moved AS (
    UPDATE delivery_runtarget t SET not_before = n.at
    FROM unnest(%(targets)s::bigint[], %(before)s::timestamptz[], %(at)s::timestamptz[]) AS n(id, before, at)
    WHERE t.id = n.id AND t.status = 'pending' AND t.not_before = n.before
    RETURNING t.id
)
UPDATE queues_item i SET moved_why = n.why
FROM unnest(%(targets)s::bigint[], %(why)s::text[]) AS n(id, why) JOIN moved USING (id)
WHERE i.target_id = n.id
RETURNING i.target_id
"""


def _write(moves: Sequence[Moved]) -> int:
    """Write the new times of items that still wait at the old ones; return how many."""
    if not moves:
        return 0
    longest = Item._meta.get_field("moved_why").max_length
    with connection.cursor() as cursor:
        cursor.execute(
            MOVE,
            {
                "targets": [each.target_id for each in moves],
                "before": [each.before for each in moves],
                "at": [each.at for each in moves],
                "why": [each.why[:longest] for each in moves],
            },
        )
        moved = [row[0] for row in cursor.fetchall()]
    items_changed(RunTarget.objects.filter(pk__in=moved))
    return len(moved)
