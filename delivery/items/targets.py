"""Adds items of queues to runs, and changes or withdraws them until they have begun (SPEC Q1, Q2).

An item is a target with a content of its own. A run of a queue has one account and stays open: items are added to it
while it sends. Whatever changes a target locks its run first, as `lifecycle` does. A target that a pump has claimed and
not begun is released; its intent names the claim (`engine/recording.py`), so a message with the old content gets no
leave any more. A target that has begun is refused.
"""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any

from django.db import connection, transaction
from django.db.models import Count, Exists, F, OuterRef, Q
from django.utils import timezone

from accounts.models import Account
from activity.ledger import NEVER_LEFT
from activity.models import Attempt
from delivery import lifecycle, live
from delivery.lifecycle.steps import serve, settle_if_done
from delivery.limits.lookup import limits_for
from delivery.models import Run, RunAccount, RunTarget, TargetContent
from delivery.planning import new_people
from delivery.states import OPEN_RUN, SETTLED_RUN, WITHDRAWN, PauseReason, RunStatus, TargetStatus

MANY = 10_000  # targets from which the planner is told about them


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """The content of one target: parts of its own or, without them, those of its run with these values."""

    subject: str = ""
    parts: Sequence[Mapping[str, Any]] | None = None
    values: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTarget:
    """A target to add. `refused` says why its recipient must not get it; empty if they may."""

    target_id: int
    item_id: int
    recipient_id: int
    not_before: datetime
    content: Content
    refused: str = ""


def reserve(number: int) -> list[int]:
    """Return ids for targets that are about to be added."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT nextval(pg_get_serial_sequence('delivery_runtarget', 'id')) FROM generate_series(1, %s)",
            [number],
        )
        return [row[0] for row in cursor.fetchall()]


def make(run: Run, account_id: int) -> Run:
    """Save a run of a queue without targets; `add` starts it with the first of them."""
    run.save()
    RunAccount.objects.create(run=run, account_id=account_id)
    return run


def lock_runs(run_ids: Iterable[int]) -> dict[int, Run]:
    """Lock runs in the order of their ids until this transaction ends; return them as they are now."""
    rows = Run.objects.filter(pk__in=set(run_ids)).select_for_update(no_key=True).order_by("pk")
    return {run.pk: run for run in rows}


ADD = """
INSERT INTO delivery_runtarget (id, run_id, recipient_id, account_id, item_id, status, not_before, error, settled_at)
SELECT n.id, %(run)s, n.recipient_id, %(account)s, n.item_id,
       CASE WHEN n.refused = '' THEN 'pending' ELSE 'skipped' END, n.not_before, n.refused,
       CASE WHEN n.refused = '' THEN NULL ELSE %(now)s::timestamptz END
FROM unnest(%(ids)s::bigint[], %(recipients)s::bigint[], %(items)s::bigint[], %(times)s::timestamptz[],
            %(refused)s::text[]) AS n(id, recipient_id, item_id, not_before, refused)
"""
CONTENTS = """
INSERT INTO delivery_targetcontent (target_id, subject, parts, "values")
SELECT n.target_id, n.subject, n.parts::jsonb, n.own::jsonb
FROM unnest(%(ids)s::bigint[], %(subjects)s::text[], %(parts)s::text[], %(values)s::text[])
    AS n(target_id, subject, parts, own)
ON CONFLICT (target_id) DO UPDATE
SET subject = excluded.subject, parts = excluded.parts, "values" = excluded."values"
"""


def add(run: Run, account: Account, targets: Sequence[NewTarget], *, paused: bool = False) -> None:
    """Add targets to a run that the caller has made or locked, and let it send them.

    A new run starts, unless `paused`; one that waits or is paused takes them and waits on.
    """
    if not targets:
        return
    now, new = timezone.now(), run.total == 0
    arguments: dict[str, Any] = {
        "run": run.pk,
        "account": account.pk,
        "now": now,
        "ids": [each.target_id for each in targets],
        "recipients": [each.recipient_id for each in targets],
        "items": [each.item_id for each in targets],
        "times": [each.not_before for each in targets],
        "refused": [each.refused for each in targets],
    }
    with connection.cursor() as cursor:
        cursor.execute(ADD, arguments)
        if len(targets) >= MANY:
            cursor.execute("ANALYZE delivery_runtarget")
    write({each.target_id: each.content for each in targets})
    pending = sum(not each.refused for each in targets)
    run.total, run.pending = run.total + len(targets), run.pending + pending
    run.skipped, run.left_out = run.skipped + len(targets) - pending, run.left_out + len(targets) - pending
    run.save(update_fields=["total", "pending", "skipped", "left_out"])
    _set_out(run, account, new=new, paused=paused)


def write(contents: Mapping[int, Content]) -> None:
    """Write down what targets say, by their ids."""
    arguments: dict[str, Any] = {
        "ids": list(contents),
        "subjects": [each.subject for each in contents.values()],
        "parts": [None if each.parts is None else json.dumps(list(each.parts)) for each in contents.values()],
        "values": [json.dumps(dict(each.values)) for each in contents.values()],
    }
    with connection.cursor() as cursor:
        cursor.execute(CONTENTS, arguments)


def _set_out(run: Run, account: Account, *, new: bool, paused: bool) -> None:
    limits = limits_for([(account, run.action)])[account.pk, run.action]
    if run.pending and new_people.limit_people(limits):
        new_people.spread(run, account, now=timezone.now())
    if new:
        lifecycle.start([run], behind={})
        if paused and run.status in OPEN_RUN:
            lifecycle.pause(run, reason=PauseReason.OPERATOR, detail="Its queue is paused.")
    elif run.status == RunStatus.RUNNING:
        serve([run])
    announce([run])


def announce(runs: Iterable[Run]) -> None:
    """Tell open pages after the commit that runs have changed."""
    for run in runs:
        transaction.on_commit(partial(live.run_changed, run.pk, run.owner_id))


# Until it has begun.


def not_begun() -> Q:
    """Return the condition for targets that nothing was tried for yet: they may be changed and withdrawn."""
    tried = Attempt.objects.filter(target=OuterRef("pk")).exclude(outcome__in=NEVER_LEFT)
    waits = Q(status=TargetStatus.PENDING) | Q(status=TargetStatus.SENDING, begun_at__isnull=True)
    return waits & Q(parts_done=0, attempts=0) & Q(~Exists(tried))


def hold(target_ids: Collection[int], runs: Mapping[int, Run]) -> dict[int, RunTarget]:
    """Lock those of the targets that have not begun, release their claims, and return them by id.

    The caller holds the locks of their runs. BEGIN leaves out targets that are locked, so none of them begins
    meanwhile.
    """
    rows = RunTarget.objects.filter(
        not_begun(), pk__in=target_ids, run__in=[pk for pk, run in runs.items() if run.canceled_at is None]
    )
    found = {target.pk: target for target in rows.select_for_update(of=("self",)).order_by("pk")}
    claimed = [pk for pk, target in found.items() if target.status == TargetStatus.SENDING]
    RunTarget.objects.filter(pk__in=claimed).update(status=TargetStatus.PENDING, claimed_at=None)
    for pk in claimed:
        target, run = found[pk], runs[found[pk].run_id]
        target.status, target.claimed_at = TargetStatus.PENDING, None
        run.sending, run.pending = run.sending - 1, run.pending + 1
    for run in {found[pk].run_id: runs[found[pk].run_id] for pk in claimed}.values():
        run.save(update_fields=["sending", "pending"])
    return found


def replan(times: Mapping[int, datetime]) -> None:
    """Give held targets other times, by their ids."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE delivery_runtarget t SET not_before = n.at "
            "FROM unnest(%s::bigint[], %s::timestamptz[]) AS n(id, at) WHERE t.id = n.id",
            [list(times), list(times.values())],
        )


def withdraw(held: Mapping[int, RunTarget], runs: Mapping[int, Run], *, why: str = WITHDRAWN) -> None:
    """Skip held targets: nobody misses them, so a run of which all others are sent has succeeded."""
    RunTarget.objects.filter(pk__in=list(held)).update(
        status=TargetStatus.SKIPPED, error=why, settled_at=timezone.now()
    )
    for run_id, number in _by_run(held).items():
        run = runs[run_id]
        run.pending, run.skipped, run.left_out = (
            run.pending - number,
            run.skipped + number,
            run.left_out + number,
        )
        run.save(update_fields=["pending", "skipped", "left_out"])
        if run.status not in SETTLED_RUN:
            settle_if_done(run)
    announce(runs.values())


def part_with(target_ids: Collection[int]) -> None:
    """Let withdrawn targets stand for no item any more: another target is made for theirs."""
    RunTarget.objects.filter(pk__in=target_ids).update(item_id=-F("pk"))


def move(held: Mapping[int, RunTarget], source: Mapping[int, Run], run: Run, account: Account) -> None:
    """Move held targets to another run of their queue, which another account may serve."""
    RunTarget.objects.filter(pk__in=list(held)).update(run=run, account=account)
    for run_id, number in _by_run(held).items():
        before = source[run_id]
        before.pending, before.total = before.pending - number, before.total - number
        before.save(update_fields=["pending", "total"])
        if before.status not in SETTLED_RUN:
            settle_if_done(before)
    new = run.total == 0
    run.pending, run.total = run.pending + len(held), run.total + len(held)
    run.save(update_fields=["pending", "total"])
    _set_out(run, account, new=new, paused=False)


def wake(runs: Iterable[Run]) -> None:
    """Let the accounts of running runs look at their targets again: times or contents have changed."""
    serve([run for run in runs if run.status == RunStatus.RUNNING])


def _by_run(held: Mapping[int, RunTarget]) -> dict[int, int]:
    counts: dict[int, int] = {}
    for target in held.values():
        counts[target.run_id] = counts.get(target.run_id, 0) + 1
    return counts


def counts(run_ids: Collection[int]) -> dict[str, int]:
    """Return the numbers of targets of runs by status."""
    rows = RunTarget.objects.filter(run__in=run_ids).values_list("status")
    return dict(rows.annotate(number=Count("pk")).order_by())


def contents_of(target_ids: Collection[int]) -> dict[int, TargetContent]:
    """Return what targets say, by their ids."""
    return TargetContent.objects.in_bulk(target_ids)
