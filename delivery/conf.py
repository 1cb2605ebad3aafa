"""Reads the settings of windows, runs and pacing (SPEC W, R, P) into the types that the pure core takes."""

from datetime import datetime, timedelta

from django.conf import settings

from accounts.models import Account
from delivery.overdue import Drain
from delivery.pacing import adaptive_delay, breaker_trips, error_rate
from delivery.planning.values import SlowDown
from delivery.retry import RetryRules

ASKS_ABOVE = 100  # messages; above this a person is asked before sending, and types the name before canceling


def retry_rules() -> RetryRules:
    """Return the retry settings. Seconds stay as they are set; minutes and hours are scaled as the limits are."""
    usual, minute = RetryRules(), settings.MINUTE_SECONDS
    return RetryRules(
        max_attempts=settings.MAX_ATTEMPTS,
        backoff_base=settings.BACKOFF_BASE_SECONDS,
        recipient_waits=tuple(wait * minute / 60 for wait in usual.recipient_waits),
        rate_limited_after=settings.RATE_LIMITED_SECONDS,
        not_connected_after=settings.NOT_CONNECTED_SECONDS,
        unreachable_after=settings.BACKOFF_BASE_SECONDS,
        in_doubt_after=usual.in_doubt_after * minute / 60,
        hold_max=settings.TROUBLE_WAIT_MAX_MINUTES * minute,
        handful=settings.TROUBLE_STREAK,
        offline_after=settings.TROUBLE_OFFLINE_MINUTES * minute,
    )


def drain() -> Drain:
    """Return how accounts with an on-time-first profile send overdue messages."""
    scale = settings.MINUTE_SECONDS / 60
    return Drain(
        on_time=timedelta(seconds=settings.ON_TIME_SECONDS * scale),
        gap_min=timedelta(seconds=settings.OVERDUE_GAP_MIN_SECONDS * scale),
        gap_max=timedelta(seconds=settings.OVERDUE_GAP_MAX_SECONDS * scale),
    )


def sendable(now: datetime) -> datetime:
    """Return the moment after which a window has to close so that a message that begins `now` arrives inside it."""
    return now + window_guard()


def window_guard() -> timedelta:
    """Return how long a window has to stay open when a message leaves, so that the message arrives inside it."""
    return timedelta(seconds=settings.WINDOW_GUARD_SECONDS)


def clock_tolerance() -> timedelta:
    """Return by how much two clocks may differ while messages leave."""
    return timedelta(seconds=settings.CLOCK_TOLERANCE_SECONDS)


def delay(base: float, error_rate: float) -> float:
    """Return the gap after a message at an error rate, from the gap without errors."""
    return adaptive_delay(
        base,
        error_rate,
        threshold=settings.ERROR_RATE_SLOW,
        factor=settings.SLOW_DOWN_FACTOR,
        maximum=settings.MAX_DELAY_SECONDS,
    )


def slows(sent: int, failed: int) -> bool:
    """Decide whether a run sends more slowly for its errors (P6)."""
    return error_rate(sent, failed) > settings.ERROR_RATE_SLOW


def trips(sent: int, failed: int) -> bool:
    """Decide whether a run has to pause for its errors; `failed` also counts messages in doubt (P6)."""
    return breaker_trips(
        sent, failed, threshold=settings.ERROR_RATE_STOP, minimum=settings.ERROR_RATE_MIN_ATTEMPTS
    )


UPLOAD_TIMES = 6  # a message with a file may take this many times as long


def longest_send(*, with_file: bool) -> timedelta:
    """Return the time after which a message that a dead pump had begun is no longer under way.

    This is ten seconds more than a message may take: the intent is written a moment before the message leaves, and
    the message is given up a little late.
    """
    times = UPLOAD_TIMES if with_file else 1
    return timedelta(seconds=settings.SEND_TIMEOUT_SECONDS * times + 10)


def slow_down(account: Account) -> SlowDown:
    """Return how much slower the account sends at the moment, and how it recovers."""
    return SlowDown(
        factor=account.slowness,
        clean=account.clean_sends,
        by=settings.SLOW_DOWN_FACTOR,
        every=settings.SLOW_DOWN_RECOVERY_SENDS,
    )


def lease_ms() -> int:
    return int(settings.LEASE_SECONDS * 1000)
