"""Live events: at most twice a second per run, and always one after the last change."""

import threading
from datetime import timedelta
from typing import Any

import pytest
from channels.layers import get_channel_layer
from django.utils import timezone
from pytest_django import Settings
from redis import Redis

from delivery import live
from delivery.models import Run
from delivery.states import RunStatus
from tests.factories import AccountFactory, RunFactory

pytestmark = pytest.mark.django_db(transaction=True)


class Told:
    """Collects what would go to the channel layer."""

    def __init__(self) -> None:
        self.events: list[tuple[str, dict[str, Any]]] = []
        self.one_more = threading.Event()

    async def send(self, group: str, event: dict[str, Any]) -> None:
        self.events.append((group, event))
        self.one_more.set()

    def of(self, group: str) -> list[dict[str, Any]]:
        return [event for to, event in self.events if to == group]


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch, redis: Redis) -> Told:
    live.flush()
    told = Told()
    monkeypatch.setattr(live, "_send", told.send)
    return told


def watch(redis: Redis, settings: Settings, group: str) -> None:
    redis.zadd(f"{settings.LIVE_PREFIX}:group:{group}", {"somebody": 1})


def test_a_change_goes_to_the_runs_group_and_the_owners(told: Told, redis: Redis, settings: Settings) -> None:
    run = RunFactory.create(sent=3, pending=6, sending=1)
    watch(redis, settings, live.run_group(run.pk))
    live.run_changed(run.pk, run.owner_id)
    live.flush()
    assert {group for group, _ in told.events} == {f"run-{run.pk}", f"owner-{run.owner_id}"}
    event = told.of(f"run-{run.pk}")[0]
    assert event["type"] == "run.changed"
    assert (event["run"], event["status"], event["sent"], event["pending"], event["total"]) == (
        run.pk,
        "running",
        3,
        7,
        10,
    )


def test_many_changes_at_once_are_told_once_and_the_last_is_told(
    told: Told, redis: Redis, settings: Settings
) -> None:
    run = RunFactory.create(pending=9)
    watch(redis, settings, live.run_group(run.pk))
    for sent in range(1, 10):
        Run.objects.filter(pk=run.pk).update(sent=sent, pending=9 - sent)
        live.run_changed(run.pk, run.owner_id)
    live.flush()
    heard = told.of(f"run-{run.pk}")
    assert 1 <= len(heard) <= 3
    assert heard[-1]["sent"] == 9


def test_what_nobody_watches_is_not_told(told: Told) -> None:
    run = RunFactory.create()
    live.run_changed(run.pk, run.owner_id)
    live.flush()
    assert told.events == []


def test_an_account_is_told_to_its_owner(told: Told, redis: Redis, settings: Settings) -> None:
    account = AccountFactory.create()
    watch(redis, settings, live.owner_group(account.owner_id))
    live.account_changed(account.pk, account.owner_id)
    live.flush()
    assert told.events == [
        (f"owner-{account.owner_id}", {"type": "account.changed", "account": account.pk}),
    ]


def test_a_run_that_is_gone_keeps_nobody_from_hearing_of_others(
    told: Told, redis: Redis, settings: Settings
) -> None:
    run = RunFactory.create()
    watch(redis, settings, live.owner_group(run.owner_id))
    live.run_changed(run.pk - 1, run.owner_id)
    live.run_changed(run.pk, run.owner_id)
    live.flush()
    assert [event["run"] for event in told.of(f"run-{run.pk}")] == [run.pk]


@pytest.fixture
def delivered(transactional_db: None) -> Run:
    return RunFactory.create(success=True, sent=2)


async def test_it_arrives_through_the_channel_layer(delivered: Run, redis: Redis) -> None:
    run = delivered
    layer = get_channel_layer()
    assert layer is not None
    channel = await layer.new_channel()
    await layer.group_add(live.run_group(run.pk), channel)
    live.run_changed(run.pk, run.owner_id)
    event = await layer.receive(channel)
    assert (event["type"], event["status"], event["sent"]) == ("run.changed", "success", 2)
    await layer.group_discard(live.run_group(run.pk), channel)


@pytest.mark.parametrize(
    ("status", "rate", "known"), [("running", 30.0, True), ("running", 0.0, False), ("paused", 30.0, False)]
)
def test_the_end_is_foretold_only_while_a_run_moves(status: str, rate: float, known: bool) -> None:
    run = RunFactory.build(status=RunStatus(status), pending=60)
    assert (live.snapshot(run, rate)["finish_at"] is not None) == known


@pytest.mark.parametrize(
    ("minutes", "hours", "known"), [(3, (6, 18), True), (1, (6, 18), False), (1, (0, 24), True)]
)
def test_no_end_is_foretold_that_its_window_comes_before(
    minutes: int, hours: tuple[int, int], known: bool
) -> None:
    start, end = hours
    closes_at = timezone.now() + timedelta(minutes=minutes)
    run = RunFactory.build(
        status=RunStatus.RUNNING,
        pending=60,
        closes_at=closes_at,
        window_start_hour=start,
        window_end_hour=end,
    )
    assert (live.snapshot(run, 30.0)["finish_at"] is not None) == known
