"""Items through the real engine and the sandbox: what leaves is what the item says, once."""

import threading
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pytest_django import Settings

from accounts.models import Account, Recipient
from delivery import conf
from delivery.engine import claims, pump, recording
from delivery.engine.recording import Intent
from delivery.engine.sql import run as run_query
from delivery.models import Run, RunTarget, TargetContent
from delivery.states import TargetStatus
from queues.actions import Took, put, withdraw
from queues.entries import Entry
from queues.models import Item, Queue
from queues.runs import runs_of
from tests.delivery.stage import Stage, add_up, pumping
from tests.factories import MediaFactory, QueueFactory


def entry(number: int, **values: Any) -> Entry:
    defaults = {"own_id": f"row-{number}", "address": f"+60127000{number:03}", "text": f"Text {number}"}
    return Entry(**defaults | values)


def queue_of(stage: Stage, *accounts: Account, **values: Any) -> Queue:
    """Return a queue whose items leave as fast as their accounts allow: none of them has a time."""
    return QueueFactory.create(owner=stage.owner, accounts=accounts, **{"pace": Queue.Pace.STEADY} | values)


def take(queue: Queue, *entries: Entry) -> list[Took]:
    return [result.took for result in put(queue, entries, source="file", by=None)]


def serve(queue: Queue, *accounts: Account, most: int = 20) -> None:
    """Pump the accounts in turn until nothing of the queue is open."""
    for _ in range(most):
        for account in accounts:
            pump.pump(account.pk)
        if not runs_of(queue).open().exists():
            return
    raise AssertionError([str(run) for run in runs_of(queue).open()])


def said(stage: Stage, *accounts: Account) -> list[str]:
    return [line["text"] for line in stage.delivered(*accounts)]


def test_each_item_says_its_own_text_once_and_in_order(stage: Stage) -> None:
    account = stage.account(group_concurrency=1)
    queue = queue_of(stage, account)
    take(queue, *(entry(n) for n in range(1, 8)))
    serve(queue, account)
    assert said(stage, account) == [f"Text {n}" for n in range(1, 8)]
    assert {run.status for run in runs_of(queue)} == {"success"}


def test_items_of_the_template_say_its_text_with_their_values(stage: Stage) -> None:
    account = stage.account(group_concurrency=1)
    queue = queue_of(stage, account, text="Dear {{ title }}, {{ name }}!")
    take(
        queue,
        entry(1, text="", values={"title": "Dr."}, name="Lim"),
        entry(2, text="Own, {{ name }}", name="Tan"),
    )
    serve(queue, account)
    assert sorted(said(stage, account)) == ["Dear Dr., Lim!", "Own, Tan"]


def test_an_item_sends_its_own_file(stage: Stage) -> None:
    account = stage.account(group_concurrency=1)
    queue = queue_of(stage, account)
    first, second = MediaFactory.create_batch(2, owner=stage.owner, stored=True)
    take(queue, entry(1, media=[first.pk]), entry(2, media=[second.pk]), entry(3, media=[first.pk]))
    serve(queue, account)
    handles = [line["media"] for line in stage.delivered(account)]
    assert handles[0] == handles[2] != handles[1]


def test_an_item_without_a_content_fails_and_says_nothing(stage: Stage) -> None:
    account = stage.account(group_concurrency=1)
    queue = queue_of(stage, account)
    take(queue, entry(1), entry(2))
    TargetContent.objects.filter(target__item__own_id="row-1").delete()
    serve(queue, account)
    assert said(stage, account) == ["Text 2"]
    assert RunTarget.objects.get(item__own_id="row-1").error == "the text of this item is gone"


def test_a_message_with_the_old_text_gets_no_leave_after_a_new_claim(stage: Stage) -> None:
    """The same pump claims the item again with the same fence: only the claim tells the two apart."""
    account = stage.account()
    Account.objects.filter(pk=account.pk).update(fence=7)
    queue = queue_of(stage, account)
    take(queue, entry(1))
    run = Run.objects.get(reminder=queue.carrier)
    now = datetime.now(UTC)

    def claim() -> claims.Claimed:
        (claimed,) = claims.claim(run.pk, account.pk, fence=7, most=5, now=datetime.now(UTC))
        return claimed

    def leave(claimed: claims.Claimed) -> object:
        intent = Intent(
            target_id=claimed.target_id,
            part=0,
            fence=7,
            wished_at=now,
            claimed_at=claimed.claimed_at,
        )
        answer = run_query(
            recording.begin(
                [intent], now=datetime.now(UTC), guard=timedelta(), tolerance=conf.clock_tolerance()
            )
        )
        return answer[0]

    old = claim()
    assert take(queue, entry(1, text="New")) == [Took.CHANGED]
    assert leave(old) is None
    new = claim()
    assert leave(old) is None
    assert leave(new) is not None
    assert take(queue, entry(1, text="Too late")) == [Took.BEGUN]


@pytest.mark.parametrize("round_", range(3))
def test_what_leaves_is_what_the_item_says_while_it_is_changed_all_the_time(
    stage: Stage, round_: int
) -> None:
    """A person changes and withdraws items while the engine sends them: each refusal is true, and so is each yes."""
    account = stage.account(limits={"gap_min": 0.05, "gap_max": 0.05})
    queue, count = queue_of(stage, account), 12
    take(queue, *(entry(n) for n in range(1, count + 1)))
    last: dict[str, str] = {f"row-{n}": f"Text {n}" for n in range(1, count + 1)}
    gone = set[str]()
    with pumping(stage, account, after=1):
        for version in range(40):
            number = version % count + 1
            name = f"row-{number}"
            if version % 10 == 9 and name not in gone:
                if withdraw(queue, by=None, source="file", own_ids=[name]).done:
                    gone.add(name)
            elif take(queue, entry(number, text=f"Text {number} v{version}")) == [Took.CHANGED]:
                last[name] = f"Text {number} v{version}"
    serve(queue, account)
    assert sorted(said(stage, account)) == sorted(text for name, text in last.items() if name not in gone)
    for run in runs_of(queue):
        add_up(run)


def test_a_recipient_who_opts_out_between_claim_and_send_gets_nothing(stage: Stage) -> None:
    account = stage.account(limits={"gap_min": 0.3, "gap_max": 0.3})
    queue = queue_of(stage, account)
    take(queue, *(entry(n) for n in range(1, 5)))
    with pumping(stage, account, after=1):
        Recipient.objects.filter(address="+60127000004").update(opted_out_at=datetime.now(UTC))
    serve(queue, account)
    assert "Text 4" not in said(stage, account)
    assert RunTarget.objects.get(item__own_id="row-4").error == "opted out"


def test_a_worker_that_dies_loses_and_doubles_nothing(stage: Stage, quick: Settings) -> None:
    account = stage.account(limits={"gap_min": 0.05, "gap_max": 0.05})
    queue = queue_of(stage, account)
    take(queue, *(entry(n) for n in range(1, 9)))
    thread = threading.Thread(target=pump.pump, args=(account.pk,))
    thread.start()
    while thread.is_alive() and len(stage.received(account)) < 3:
        thread.join(0.01)
    # Another pump takes over, as after a death: the first one has an old fence from now on.
    Account.objects.filter(pk=account.pk).update(fence=1000)
    thread.join()
    serve(queue, account, most=40)
    assert sorted(said(stage, account)) == [f"Text {n}" for n in range(1, 9)]
    assert Item.objects.filter(target__status=TargetStatus.SENT).count() == 8
