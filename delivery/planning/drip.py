"""Plans a time for every target of a drip (SPEC S3): when its run is made, and anew when its plan was not kept."""

import random
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Count, Min

from accounts.models import Account
from delivery import knobs
from delivery.inbound import first_contacts
from delivery.lifecycle import window_of
from delivery.models import Run, RunAccount, RunTarget
from delivery.overdue import overdue_before
from delivery.pacing import Limits, spread_ms
from delivery.planning import standing
from delivery.planning.course import Allowance
from delivery.planning.diary import Diary, NoRoomError, Slot, Spacing
from delivery.planning.standing import Share
from delivery.states import TargetStatus

LONG_AGO, NEVER = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)


@transaction.atomic
def plan(run: Run, *, now: datetime, only: int | None = None) -> int:
    """Give every pending target of a drip its time, of all its accounts or of one; answers with how many.

    The accounts are locked: two plans that are made at once would not see each other. What no day has room for
    stays as it is, and the engine says why it cannot be sent.
    """
    accounts = _locked(run, only)
    pending = RunTarget.objects.filter(run=run, status=TargetStatus.PENDING, account__in=accounts)
    counts = dict(pending.values_list("account").annotate(Count("pk")).order_by())
    shares = standing.shares_of(accounts, now=now, but=run)
    queues = {
        account.pk: [share for share in shares if share.account_id == account.pk] for account in accounts
    }
    left = standing.allowances(accounts, {pk: [run.action] for pk in queues}, queues, now=now)
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
    """Give these times to all that is pending, but for first contacts while the account may make none."""
    given = place(slots, run_id=run.pk, account_id=account.pk, since=LONG_AGO, until=NEVER)
    first_contacts.hold([run.pk])
    return given


# The targets of a run and an account that are planned within a stretch, counted in their order from 1; those from
# the first place on get the times, as many as each has room for.
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
    """Plan the targets of a stretch anew but for the first `skip` of them; answers with how many were."""
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
    """Plan anew what an account has left of a drip, if some of it is overdue; answers with how many targets.

    After an outage or a pause, all that is overdue would be due at once, and leave as fast as the limits allow.
    """
    if run.drip is None:
        return 0
    pending = RunTarget.objects.filter(run=run, account=account, status=TargetStatus.PENDING)
    first = pending.aggregate(first=Min("not_before"))["first"]
    if first is None or first >= overdue_before(knobs.drain(), now):
        return 0
    return plan(run, now=now, only=account.pk)


def times(
    run: Run, account: Account, diary: Diary, *, targets: int, limits: Limits, now: datetime
) -> list[Slot]:
    """A time for each of so many targets. The same run and account give the same plan, for the same diary."""
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
    """The seconds between two targets: what the reminder asks for, unless the account's limits ask for more."""
    shortest, longest = run.drip or (0, 0)
    share = spread_ms(limits, len(run.parts)) / 1000
    low, high = max(shortest, limits.gap_min, share), max(longest, limits.gap_max, share)
    scale = settings.MINUTE_SECONDS / 60
    return low * scale, high * scale


def diary_of(
    account: Account, allowance: Allowance, queue: Sequence[Share], *, action: str, now: datetime
) -> Diary:
    """The account's days with what is already sent and planned. Runs that send at once take the first days."""
    diary = Diary(zone=account.zone, now=now, room=allowance.room)
    for share in queue:
        job = share.job(now)
        if job.action == action and job.targets and allowance.fits(job.parts):
            diary.openings(job.window, parts=job.parts, targets=job.targets, after=job.ready_at)
    return diary


def _locked(run: Run, only: int | None) -> list[Account]:
    shares = RunAccount.objects.filter(run=run) if only is None else RunAccount.objects.filter(account=only)
    rows = Account.objects.select_for_update(no_key=True).filter(pk__in=shares.values("account"))
    return list(rows.defer("credentials").order_by("pk"))
