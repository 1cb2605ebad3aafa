"""Any number of workers, and an account is still served by one pump at a time (P1); workers come and go."""

import time

import pytest

from tests.chaos.evidence import part_keys, parts_out_of_order, pumps_that_overlapped
from tests.chaos.lab import Lab

LATENCY = 300
PACE = {"per_minute": 1200}  # 20 per second, more than three at once can carry at this latency
WORST_SECOND = 23  # 50 ms apart, up to 12 % less


@pytest.mark.parametrize("workers", [2, 4])
def test_an_account_is_never_served_by_two_workers_at_once(lab: Lab, workers: int) -> None:
    lab.want_workers(workers)
    senders = [lab.add_account(limits=PACE, idempotent=False, latency_ms=LATENCY) for _ in range(3)]
    runs = {sender.id: lab.operator.fire(sender.id, targets=40) for sender in senders}
    for _ in range(10):
        for sender in senders:
            lab.operator.send_pumps(sender.id, times=workers)
        time.sleep(0.2)

    for sender in senders:
        assert lab.settled(runs[sender.id]).status == "success"
        targets = lab.operator.targets(runs[sender.id])
        assert sender.seen.arrivals() == dict.fromkeys(part_keys(targets), 1)
        assert pumps_that_overlapped(sender.seen.received(), targets) == []
        assert sender.seen.most_in_flight(LATENCY) == 3
        assert sender.seen.worst(1000) <= WORST_SECOND


def test_the_parts_of_a_group_stay_in_order_and_three_groups_are_open_at_most(lab: Lab) -> None:
    lab.want_workers(2)
    sender = lab.add_account(limits={"per_minute": 3000}, latency_ms=100)
    run = lab.operator.fire(sender.id, targets=12, parts=3)
    for _ in range(5):
        lab.operator.send_pumps(sender.id, times=2)
        time.sleep(0.2)

    assert lab.settled(run).status == "success"
    lines = sender.seen.received()
    assert parts_out_of_order(lines, lab.operator.targets(run), parts=3) == []
    assert sender.seen.most_groups_open() == 3


def test_a_pump_delivered_five_times_at_once_sends_nothing_twice(lab: Lab) -> None:
    lab.kill_workers()
    sender = lab.add_account(idempotent=False, latency_ms=100)
    run = lab.operator.fire(sender.id, targets=30)
    lab.operator.send_pumps(sender.id, times=5)

    lab.want_workers(2)

    assert lab.settled(run).status == "success"
    targets = lab.operator.targets(run)
    assert sender.seen.arrivals() == dict.fromkeys(part_keys(targets), 1)
    assert pumps_that_overlapped(sender.seen.received(), targets) == []


def test_a_worker_asked_to_stop_lands_what_is_in_the_air_and_another_goes_on(lab: Lab) -> None:
    lab.want_workers(1)
    first = lab.workers[0]
    sender = lab.add_account(idempotent=False, limits={"per_minute": 600}, latency_ms=500)
    run = lab.operator.fire(sender.id, targets=25)
    lab.delivered(sender, 5)

    first.ask_to_stop()

    assert first.exit_code() == 0
    left = lab.operator.run(run)
    assert (left.status, left.sending, left.unconfirmed) == ("running", 0, 0)
    assert left.sent == len(sender.seen.received())
    assert left.pending > 0
    lab.want_workers(1)
    assert lab.settled(run).status == "success"
    assert sender.seen.arrivals() == dict.fromkeys(part_keys(lab.operator.targets(run)), 1)


def test_a_new_account_is_served_without_a_restart_by_the_worker_of_its_share(lab: Lab) -> None:
    lab.kill_workers()
    lab.start_worker(share="1/2")
    senders = [lab.add_account() for _ in range(2)]
    runs = {sender.id: lab.operator.fire(sender.id, targets=5) for sender in senders}
    of_first, of_second = sorted(senders, key=lambda sender: sender.id % 2)

    assert lab.settled(runs[of_first.id]).status == "success"
    assert lab.operator.run(runs[of_second.id]).pending == 5
    lab.start_worker(share="2/2")
    assert lab.settled(runs[of_second.id]).status == "success"
    lab.kill_workers()


def test_a_worker_that_stood_still_repeats_nothing_when_it_goes_on(lab: Lab) -> None:
    """Its account was taken over meanwhile, while it held messages and others were under way."""
    lab.want_workers(2)
    sender = lab.add_account(idempotent=False, limits={"per_minute": 600}, latency_ms=200)
    run = lab.operator.fire(sender.id, targets=100)
    for worker in list(lab.workers):
        lab.asked([sender], 5)
        worker.freeze()
        try:
            lab.asked([sender], 10)  # more than it could have had in the air: the other one has the account
        finally:
            worker.thaw()

    found = lab.settled(run)
    assert found.sent + found.unconfirmed == found.total
    targets = lab.operator.targets(run)
    arrived = sender.seen.arrivals()
    assert max(arrived.values()) == 1
    assert all(f"{target.key}-0" in arrived for target in targets if target.status == "sent")


@pytest.mark.soak
def test_a_worker_with_more_busy_accounts_than_threads_serves_them_in_turn_and_fires_on_time(
    lab: Lab,
) -> None:
    lab.kill_workers()
    lab.start_worker(threads=6)
    busy = [lab.add_account(limits={"per_minute": 120}) for _ in range(10)]
    runs = [lab.operator.fire(sender.id, targets=400) for sender in busy]
    late = lab.add_account()
    lab.asked(busy, 20)

    [reminder] = lab.operator.schedule(late.id, targets=2, after=[3.0])

    lab.until(lambda: lab.operator.firings([reminder]), "the reminder fires", 30)
    lab.until(lambda: len(late.seen.delivered()) == 2, "its account has its turn")
    lab.until(lambda: all(sender.seen.delivered() for sender in busy), "all accounts have theirs")
    lab.kill_workers()
    for run in runs:
        lab.operator.cancel(run)
