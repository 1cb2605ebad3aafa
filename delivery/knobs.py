"""The settings of W, R and P, in the shapes that the pure core takes."""

from datetime import datetime, timedelta

from django.conf import settings

from accounts.models import Account
from delivery.overdue import Drain
from delivery.pacing import adaptive_delay, breaker_trips
from delivery.planning.course import SlowDown
from delivery.retry import RetryKnobs


def retry_knobs() -> RetryKnobs:
    return RetryKnobs(
        max_attempts=settings.MAX_ATTEMPTS,
        backoff_base=settings.BACKOFF_BASE_SECONDS,
        rate_limited_after=settings.RATE_LIMITED_SECONDS,
        not_connected_after=settings.NOT_CONNECTED_SECONDS,
    )


def drain() -> Drain:
    """How accounts of an on-time-first profile send what was held up."""
    scale = settings.MINUTE_SECONDS / 60
    return Drain(
        on_time=timedelta(seconds=settings.ON_TIME_SECONDS * scale),
        gap_min=timedelta(seconds=settings.OVERDUE_GAP_MIN_SECONDS * scale),
        gap_max=timedelta(seconds=settings.OVERDUE_GAP_MAX_SECONDS * scale),
    )


def sendable(now: datetime) -> datetime:
    """A window has to close after this moment for a message that begins `now` to arrive inside it."""
    return now + timedelta(seconds=settings.WINDOW_GUARD_SECONDS)


def delay(base: float, error_rate: float) -> float:
    """The gap after a message at an error rate, from the gap without errors."""
    return adaptive_delay(
        base,
        error_rate,
        threshold=settings.ERROR_RATE_SLOW,
        factor=settings.SLOW_DOWN_FACTOR,
        maximum=settings.MAX_DELAY_SECONDS,
    )


def trips(sent: int, failed: int) -> bool:
    return breaker_trips(
        sent, failed, threshold=settings.ERROR_RATE_STOP, minimum=settings.ERROR_RATE_MIN_ATTEMPTS
    )


UPLOAD_TIMES = 6  # a file may take so many times as long as a message without one


def longest_send(*, with_file: bool) -> timedelta:
    """After this time a message that a dead pump had begun is no longer under way.

    Ten seconds more than it may take: its number may be asked for first, and it is given up a little late.
    """
    times = UPLOAD_TIMES if with_file else 1
    return timedelta(seconds=settings.SEND_TIMEOUT_SECONDS * times + 10)


def slow_down(account: Account) -> SlowDown:
    """How much slower the account is at the moment, and how it recovers."""
    return SlowDown(
        factor=account.slow_factor,
        clean=account.clean_sends,
        by=settings.SLOW_DOWN_FACTOR,
        every=settings.SLOW_DOWN_RECOVERY_SENDS,
    )


def lease_ms() -> int:
    return int(settings.LEASE_SECONDS * 1000)
