"""An account's own working hours, and its ramp after it connected again (SPEC P18).

The strictest of the hours and a run's window wins. Both hold when a message is claimed (`engine/shift/refill.py`) and
once more right before it leaves (`engine/recording.py`), by what the account's row says then.
"""

from datetime import datetime, timedelta

from django.conf import settings

from accounts.models import Account
from delivery import conf, pacing
from delivery.window import Window, closes_at, days_of, is_open, opens_at

# When the hours of the account `a` that are open at a moment end: never where it has none, long ago where it is outside
# of them.
ENDS = """
CASE WHEN a.work_start_hour IS NULL AND a.work_days = 127 THEN 'infinity'::timestamptz
     WHEN EXTRACT(HOUR FROM {at} AT TIME ZONE a.zone) >= COALESCE(a.work_start_hour, 0)
          AND EXTRACT(HOUR FROM {at} AT TIME ZONE a.zone) < COALESCE(a.work_end_hour, 24)
          AND (a.work_days >> (EXTRACT(ISODOW FROM {at} AT TIME ZONE a.zone)::int - 1)) & 1 = 1
     THEN (date_trunc('day', {at} AT TIME ZONE a.zone) + make_interval(hours => COALESCE(a.work_end_hour, 24)))
          AT TIME ZONE a.zone
     ELSE '-infinity'::timestamptz END
"""


def hours_of(account: Account) -> Window | None:
    """Return the account's working hours as a window; None where it has none."""
    if account.work_start_hour is None and account.work_days == 0b1111111:
        return None
    return Window(
        start_hour=account.work_start_hour or 0,
        end_hour=24 if account.work_end_hour is None else account.work_end_hour,
        days=days_of(account.work_days),
        zone=account.zone,
    )


def begin_at(account: Account, *, now: datetime) -> datetime | None:
    """Return when the account's hours begin again; None while they are open, and stay so until a message arrived."""
    hours = hours_of(account)
    if hours is None:
        return None
    if not is_open(hours, now):
        return opens_at(hours, now)
    ends = closes_at(hours, now)
    return opens_at(hours, ends) if ends <= conf.sendable(now) else None


def ramp_factor(account: Account, *, now: datetime) -> float:
    """Return how many times longer the account's gaps are, because it connected again a short time ago."""
    if account.reconnected_at is None:
        return 1.0
    return pacing.ramp((now - account.reconnected_at).total_seconds(), length=_length())


def ramp_ends(account: Account, *, now: datetime) -> datetime | None:
    """Return when the account has its full pace again; None if it has."""
    if account.reconnected_at is None:
        return None
    ends = account.reconnected_at + timedelta(seconds=_length())
    return ends if ends > now else None


def ramp_loss(account: Account, *, now: datetime) -> timedelta:
    """Return how much later an account is finished for the rest of its ramp."""
    if account.reconnected_at is None:
        return timedelta()
    since = (now - account.reconnected_at).total_seconds()
    return timedelta(seconds=pacing.ramp_loss(since, length=_length()))


def _length() -> float:
    """Return the length of a ramp in seconds; a minute of it is one of the limits."""
    return float(settings.RECONNECT_RAMP_MINUTES * settings.MINUTE_SECONDS)
