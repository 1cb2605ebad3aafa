"""The broker's connections: kombu's, with deadlines and short pauses, and waiting for a Redis in trouble.

Celery 5.7 and kombu 5.7 are changed here and nowhere else; each class says which behaviour it changes.
"""

from typing import Any

from amqp.protocol import queue_declare_ok_t  # type: ignore[import-untyped]
from celery.app import amqp
from kombu import connection
from kombu.transport import redis

from config.redis.connection import Refusable

FIRST_PAUSE = 0.5  # seconds before the second try to connect; each later pause is this much longer
LONGEST_PAUSE = 3.0


class Channel(redis.Channel):
    """A channel of the broker with bounded connections, which reports a lost connection as one.

    When Redis goes away, messages in work are put back and acknowledged on a channel that is already closed.
    Celery expects an error of the connection from that and continues; kombu 5.7.0 raises an AttributeError, which
    ends the worker. No message is lost: an account without a pump is found by its wake-up.

    A worker consumes from thousands of queues. kombu sorts all of them anew for each one that is added, and asks for
    the length of each, which nobody reads: with 10,000 queues a worker took 83 seconds to start.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self._cycle_is_old = False
        super().__init__(*arguments, **options)  # type: ignore[no-untyped-call]

    def queue_declare(self, queue: Any = None, passive: bool = False, **options: Any) -> Any:
        """Declare a queue without asking for its length, except where that is what is asked for."""
        if passive or not queue:
            return super().queue_declare(queue, passive, **options)  # type: ignore[no-untyped-call]
        self._new_queue(queue, **options)  # type: ignore[no-untyped-call]
        return queue_declare_ok_t(queue, 0, 0)

    def _update_queue_cycle(self) -> None:
        self._cycle_is_old = True

    def _brpop_start(self, timeout: Any = None) -> None:
        """Wait for the next message of any queue, those included that were added since the last one."""
        if self._cycle_is_old:
            self._cycle_is_old = False
            super()._update_queue_cycle()  # type: ignore[no-untyped-call]
        super()._brpop_start(timeout)  # type: ignore[no-untyped-call]

    def _connparams(self, asynchronous: bool = False) -> dict[str, Any]:
        if self.connection is None or self.connection.client is None:
            raise ConnectionError("The connection to the broker is closed.")
        parameters: dict[str, Any] = super()._connparams(asynchronous)  # type: ignore[no-untyped-call]
        made = parameters["connection_class"]
        parameters["connection_class"] = type("BrokerConnection", (Refusable, made), {})
        return parameters


redis.Transport.Channel = Channel


class Connection(connection.Connection):
    """A connection that tries again every few seconds; kombu's pauses grow to half a minute, which is too long."""

    def _ensure_connection(
        self,
        errback: Any = None,
        max_retries: int | None = None,
        interval_start: float = FIRST_PAUSE,
        interval_step: float = FIRST_PAUSE,
        interval_max: float = LONGEST_PAUSE,
        *rest: Any,
        **options: Any,
    ) -> Any:
        return super()._ensure_connection(  # type: ignore[no-untyped-call]
            errback,
            max_retries,
            min(interval_start, FIRST_PAUSE),
            min(interval_step, FIRST_PAUSE),
            min(interval_max, LONGEST_PAUSE),
            *rest,
            **options,
        )


class AMQP(amqp.AMQP):  # type: ignore[misc]
    """Celery's AMQP class with our connections."""

    Connection = Connection
