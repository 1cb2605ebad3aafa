"""Reports the clock of beat: the ticks of a clock that is behind have expired before a worker sees them.

Beat loads this module instead of the tasks.
"""

import socket
import threading
import time
from typing import Any

import structlog
from celery.signals import beat_init
from django.db import connection

from delivery.engine import clock_reading

log = structlog.get_logger(__name__)

REPORT_EVERY = 5.0  # seconds


@beat_init.connect
def _watch_the_clock_of_beat(**_: Any) -> None:
    threading.Thread(target=_report_the_clock, name="clock", daemon=True).start()


def _report_the_clock() -> None:
    while True:
        report_the_clock_of_beat()
        time.sleep(REPORT_EVERY)


def report_the_clock_of_beat() -> None:
    try:
        clock_reading.report(f"{clock_reading.BEAT}@{socket.gethostname()}")
    except Exception:  # the database or Redis may be away for a while
        log.warning("clock_not_reported", exc_info=True)
    finally:
        connection.close()
