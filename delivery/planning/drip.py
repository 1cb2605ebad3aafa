"""Plans a time for every target of a drip (SPEC S3): when its run is made, and again when the plan was not kept."""

import random
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Count, Min

from accounts.models import Account
from delivery import conf
from delivery.lifecycle import window_of
from delivery.limits.work_hours import hours_of
from delivery.models import Run, RunAccount, RunTarget
from delivery.overdue import overdue_before
from delivery.pacing import Limits, spread_ms
from delivery.planning import workload
from delivery.planning.diary import Diary, NoRoomError, Slot, Spacing
from delivery.planning.values import Allowance
from delivery.planning.workload import Share
from delivery.sessions import first_contacts
from delivery.states import TargetStatus

LONG_AGO, NEVER = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)


@transaction.atomic
def plan(run: Run, *, now: datetime, only: int | None = None) -> int:
    """Give every pending target of a drip its time, for all its accounts or one; return how many targets.

    The accounts are locked: two plans that are made at once would not see each other. Targets that no day has room for
    stay as they are, and the engine says why they cannot be sent.
    """
    accounts = _locked(run, only)
    pending = RunTarget.objects.filter(run=run, status=TargetStatus.PENDING, account__in=accounts)
    counts = dict(pending.values_list("account").annotate(Count("pk")).order_by())
    shares = workload.shares_of(accounts, now=now, but=run)
    queues = {
        account.pk: [share for share in shares if share.account_id == account.pk] for account in accounts
    }
    left = workload.allowances(accounts, {pk: [run.action] for pk in queues}, queues, now=now)
    planned = 0
    for account in accounts:
        try:
            diary = diary_of(
                account, left[account.pk, run.action], queues[account.pk], action=run.action, now=now
            )
            slots = times(
                run,
                account,
                diary,
                targets=counts.get(account.pk, 0),
                limits=left[account.pk, run.action].limits,
                now=now,
            )
        except NoRoomError:
            continue
        planned += give(slots, run, account)
    return planned


def give(slots: Sequence[Slot], run: Run, account: Account) -> int:
    """Give these times to all pending targets, except first contacts while the account may not make them."""
    given = place(slots, run_id=run.pk, account_id=account.pk, since=LONG_AGO, until=NEVER)
    first_contacts.hold([run.pk])
    return given


# Numbers the targets of a run and an account that are planned within a stretch from 1, in their order. The targets in
# places `first` to `last` of each slot get the time of that slot.
MOVE = """
WITH ranked AS MATERIALIZED (
    SELECT t.id, row_number() OVER (ORDER BY t.not_before, t.id) AS place
    FROM delivery_runtarget t
    WHERE t.account_id = %(account)s AND t.run_id = %(run)s AND t.status = 'pending'
      AND t.not_before >= %(since)s AND t.not_before < %(until)s
), slots AS (
    SELECT s.at, place FROM unnest(%(firsts)s::bigint[], %(lasts)s::bigint[], %(times)s::timestamptz[])
        AS s(first, last, at) CROSS JOIN LATERAL generate_series(s.first, s.last) AS place
)
UPDATE delivery_runtarget t SET not_before = slots.at
FROM ranked JOIN slots USING (place) WHERE t.id = ranked.id AND t.status = 'pending'
"""


def place(
    slots: Sequence[Slot], *, run_id: int, account_id: int, since: datetime, until: datetime, skip: int = 0
) -> int:
    """Plan the targets of a stretch again, except the first `skip` of them; return how many were planned."""
    ends: list[int] = []
    for slot in slots:
        ends.append((ends[-1] if ends else skip) + slot.targets)
    arguments: dict[str, Any] = {
        "run": run_id,
        "account": account_id,
        "since": since,
        "until": until,
        "firsts": [end - slot.targets + 1 for end, slot in zip(ends, slots, strict=True)],
        "lasts": ends,
        "times": [slot.at for slot in slots],
    }
    with connection.cursor() as cursor:
        cursor.execute(MOVE, arguments)
        moved: int = cursor.rowcount
    return moved


def catch_up(run: Run, account: Account, *, now: datetime) -> int:
    """Plan an account's remaining targets of a drip again, if some are overdue; return how many targets.

    After an outage or a pause, all overdue targets would be due at once, and leave as fast as the limits allow.
    """
    if run.drip is None:
        return 0
    pending = RunTarget.objects.filter(run=run, account=account, status=TargetStatus.PENDING)
    first = pending.aggregate(first=Min("not_before"))["first"]
    if first is None or first >= overdue_before(conf.drain(), now):
        return 0
    return plan(run, now=now, only=account.pk)


def times(
    run: Run, account: Account, diary: Diary, *, targets: int, limits: Limits, now: datetime
) -> list[Slot]:
    """Return slots for `targets` targets. The same run, account and diary give the same plan."""
    moments = diary.drip(
        window_of(run),
        parts=len(run.parts),
        targets=targets,
        after=now,
        spacing=spacing(run, limits),
        rng=random.Random(f"{run.key}:{account.pk}"),
    )
    return [Slot(at=at, targets=1) for at in moments]


def spacing(run: Run, limits: Limits) -> Spacing:
    """Return the seconds between two targets: the reminder's own, unless the account's limits need more."""
    shortest, longest = run.drip or (0, 0)
    share = spread_ms(limits, len(run.parts)) / 1000
    low, high = max(shortest, limits.gap_min, share), max(longest, limits.gap_max, share)
    scale = settings.MINUTE_SECONDS / 60
    return low * scale, high * scale


def diary_of(
    account: Account, allowance: Allowance, queue: Sequence[Share], *, action: str, now: datetime
) -> Diary:
    """Return the account's days with sent and planned messages. Runs that send at once take the first days."""
    diary = Diary(zone=account.zone, now=now, room=allowance.room, hours=hours_of(account))
    for share in queue:
        job = share.job(now)
        if job.action == action and job.targets and allowance.fits(job.parts):
            diary.openings(job.window, parts=job.parts, targets=job.targets, after=job.ready_at)
    return diary


def _locked(run: Run, only: int | None) -> list[Account]:
    shares = RunAccount.objects.filter(run=run) if only is None else RunAccount.objects.filter(account=only)
    rows = Account.objects.select_for_update(no_key=True).filter(pk__in=shares.values("account"))
    return list(rows.defer("credentials").order_by("pk"))
