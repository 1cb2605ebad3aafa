"""The account queues that a worker finds."""

import gc
from collections.abc import Callable, Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from pytest_django import Settings
from redis import Redis

from accounts.models import User
from accounts.share import Share
from config.celery import app
from delivery.engine import pump, workers
from delivery.engine.workers import FindQueues, account_queues
from tests.factories import AccountFactory


class Consumer:
    """The part of Celery's consumer that the step uses."""

    hostname = "worker@test"

    def __init__(self) -> None:
        self.names = {app.conf.task_default_queue}
        self.declared: set[str] = set()
        self.later: list[Callable[[], None]] = []
        self.timer = SimpleNamespace(
            call_repeatedly=lambda *_: None,
            call_after=lambda _, work, arguments: self.later.append(partial(work, *arguments)),
        )

    @property
    def task_consumer(self) -> Any:
        return SimpleNamespace(
            queues=[SimpleNamespace(name=name) for name in self.names],
            add_queue=lambda queue: self.declared.add(queue.name),
            consume=lambda: self.names.update(self.declared),
        )

    def cancel_task_queue(self, name: str) -> None:
        self.declared.discard(name)
        self.names.remove(name)

    @property
    def accounts(self) -> set[str]:
        return self.names - {app.conf.task_default_queue}


@pytest.mark.parametrize("text", ["", "1", "0/2", "3/2", "a/b", "1/2/3", "-1/2"])
def test_a_share_that_means_nothing_stops_the_start_with_a_sentence(text: str) -> None:
    with pytest.raises(ImproperlyConfigured, match="write it as i/n"):
        Share.parse(text)


def test_every_account_is_in_exactly_one_share() -> None:
    shares = [Share.parse(f"{index}/5") for index in range(1, 6)]
    for account_id in range(1, 100):
        assert sum(share.holds(account_id) for share in shares) == 1


@pytest.mark.django_db
def test_a_worker_serves_the_accounts_of_its_share_but_no_archived_ones(owner: User) -> None:
    accounts = AccountFactory.create_batch(6, owner=owner)
    AccountFactory.create(owner=owner, archived=True)
    first, second = (account_queues(Share.parse(text)) for text in ("1/2", "2/2"))
    assert first | second == {f"account-{account.pk}" for account in accounts}
    assert not first & second


@pytest.fixture
def consumer(transactional_db: None, redis: Redis) -> Iterator[Consumer]:
    yield Consumer()
    app.amqp.queues.select([app.conf.task_default_queue])


def test_new_accounts_are_found_and_archived_ones_dropped_without_a_restart(
    consumer: Consumer, owner: User
) -> None:
    step = FindQueues(consumer)
    account = AccountFactory.create(owner=owner)
    step.start(consumer)
    assert consumer.accounts == {f"account-{account.pk}"}
    other = AccountFactory.create(owner=owner)
    account.archived_at = account.created_at
    account.save()
    step.look(consumer)
    assert consumer.accounts == {f"account-{other.pk}"}


def test_a_look_shows_that_the_worker_is_alive(consumer: Consumer, redis: Redis) -> None:
    step = FindQueues(consumer)
    step.look(consumer)
    assert redis.hexists("paceline:seen:worker", "worker@test")
    redis.delete("paceline:seen:worker")
    step.look(consumer)
    assert redis.hexists("paceline:seen:worker", "worker@test")


@pytest.fixture
def one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "SLICE", 1)


@pytest.mark.usefixtures("one_by_one")
def test_queues_are_added_in_slices_and_a_worker_is_alive_once_it_has_all(
    consumer: Consumer, owner: User, redis: Redis
) -> None:
    queues = {f"account-{account.pk}" for account in AccountFactory.create_batch(3, owner=owner)}
    step = FindQueues(consumer)
    step.start(consumer)
    for served in (1, 2):
        assert len(consumer.accounts) == served
        assert not redis.hexists("paceline:seen:worker", "worker@test")
        step.look(consumer)
        assert len(consumer.later) == 1, "a look between two slices starts no slices of its own"
        consumer.later.pop()()
    assert consumer.accounts == queues
    assert not consumer.later
    assert redis.hexists("paceline:seen:worker", "worker@test")


@pytest.mark.usefixtures("one_by_one")
def test_after_a_lost_connection_a_worker_is_alive_once_it_has_all_queues_again(
    consumer: Consumer, owner: User, redis: Redis
) -> None:
    AccountFactory.create_batch(2, owner=owner)
    step = FindQueues(consumer)
    step.start(consumer)
    step.stop(consumer)
    consumer.later.clear()
    assert set(app.amqp.queues.consume_from) == {app.conf.task_default_queue}
    again = Consumer()
    step.start(again)
    assert not redis.hexists("paceline:seen:worker", "worker@test")
    again.later.pop()()
    assert len(again.accounts) == 2
    assert redis.hexists("paceline:seen:worker", "worker@test")


@pytest.mark.usefixtures("one_by_one")
def test_a_slice_that_fails_is_added_by_the_next_look(
    consumer: Consumer, owner: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    AccountFactory.create_batch(2, owner=owner)
    step = FindQueues(consumer)
    with monkeypatch.context() as broken:
        broken.setattr(app.amqp.queues, "select_add", _away)
        with pytest.raises(ConnectionError):
            step.look(consumer)
    step.look(consumer)
    consumer.later.pop()()
    assert len(consumer.accounts) == 2


def _away(_: object) -> None:
    raise ConnectionError


def test_a_worker_that_cannot_look_keeps_what_it_has(
    consumer: Consumer, owner: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = FindQueues(consumer)
    AccountFactory.create(owner=owner)
    step.look(consumer)
    before = set(consumer.names)

    def away(_share: Share) -> set[str]:
        raise ConnectionError

    monkeypatch.setattr(workers, "account_queues", away)
    step.look(consumer)
    assert consumer.names == before


def test_the_share_of_a_worker_is_a_setting(consumer: Consumer, settings: Settings) -> None:
    settings.ACCOUNT_SHARE = "2/5"
    assert FindQueues(consumer).share == Share(index=2, of=5)


def test_a_broadcast_makes_a_worker_look(consumer: Consumer, owner: User) -> None:
    step = FindQueues(consumer)
    account = AccountFactory.create(owner=owner)
    state = SimpleNamespace(
        consumer=SimpleNamespace(
            blueprint=SimpleNamespace(steps={"a": object(), "b": _looking_at(step, consumer)})
        )
    )
    assert workers.look_for_queues(state) == {"ok": "looked"}
    assert consumer.accounts == {f"account-{account.pk}"}


def test_a_worker_that_shuts_down_tells_its_pumps() -> None:
    try:
        workers._shutting_down()
        assert pump.stopping.is_set()
    finally:
        workers._ready()
    assert not pump.stopping.is_set()


def test_a_worker_that_is_ready_looks_for_garbage_seldom() -> None:
    before = gc.get_threshold()
    try:
        workers._ready()
        assert gc.get_threshold()[0] == workers.GARBAGE
    finally:
        gc.set_threshold(*before)


def _looking_at(step: FindQueues, consumer: Consumer) -> FindQueues:
    """The step, whatever consumer it is given."""
    look = step.look
    step.look = lambda _: look(consumer)  # type: ignore[method-assign, assignment]
    return step
