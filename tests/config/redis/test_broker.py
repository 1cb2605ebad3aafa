"""The broker's channel: queues that come and go while it waits for messages."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.conf import settings
from kombu.entity import Queue
from kombu.messaging import Consumer
from redis import Redis

from config.redis.broker import Channel, Connection


@pytest.fixture
def broker(redis: Redis) -> Iterator[Connection]:
    with Connection(  # type: ignore[no-untyped-call]
        settings.CELERY_BROKER_URL, transport_options=settings.CELERY_BROKER_TRANSPORT_OPTIONS
    ) as connection:
        yield connection


class Reader:
    """A consumer that keeps what it gets."""

    def __init__(self, broker: Connection) -> None:
        self.broker = broker
        self.got: list[str] = []
        self.consumer: Any = Consumer(broker, [Queue("first")], accept=["text/plain"])  # type: ignore[no-untyped-call]
        self.consumer.register_callback(self._take)  # type: ignore[no-untyped-call]
        self.consume()

    def consume(self) -> None:
        self.consumer.consume()

    def add(self, *names: str) -> None:
        for name in names:
            self.consumer.add_queue(Queue(name))  # type: ignore[no-untyped-call]
        self.consume()

    def send(self, name: str) -> None:
        with self.broker.SimpleQueue(name) as queue:  # type: ignore[no-untyped-call]
            queue.put(name)

    def read(self, count: int) -> list[str]:
        while len(self.got) < count:
            self.broker.drain_events(timeout=10)  # type: ignore[no-untyped-call]
        return self.got

    def _take(self, body: str, message: Any) -> None:
        self.got.append(body)
        message.ack()


def test_queues_that_are_added_later_are_read_and_canceled_ones_are_not(broker: Connection) -> None:
    reader = Reader(broker)
    reader.send("first")
    assert reader.read(1) == ["first"]
    reader.add("second", "third")
    reader.send("third")
    assert reader.read(2) == ["first", "third"]
    reader.consumer.cancel_by_queue("third")
    reader.send("third")
    reader.send("second")
    assert reader.read(3) == ["first", "third", "second"]


def test_many_queues_are_sorted_once_and_their_lengths_are_not_asked_for(
    broker: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    sorted_anew = []
    monkeypatch.setattr(
        Channel.__mro__[1],
        "_update_queue_cycle",
        lambda channel: sorted_anew.append(len(channel.active_queues)),
    )
    monkeypatch.setattr(Channel, "_size", lambda *_: pytest.fail("asked for a length"))
    reader = Reader(broker)
    reader.add(*(f"queue-{number}" for number in range(50)))
    with pytest.raises(TimeoutError):
        broker.drain_events(timeout=0.1)  # type: ignore[no-untyped-call]
    assert sorted_anew == [51]
