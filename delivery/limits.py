"""What an account holds itself to: its own limits over its profile's over the settings (SPEC P2)."""

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from django.conf import settings

from accounts.models import Account, Limit
from accounts.profiles import PROFILES, ProfileLimits
from delivery.limiter import Day
from delivery.pacing import Limits

FIELDS = ("per_minute", "per_hour", "per_day", "gap_min", "gap_max", "batch_size", "batch_pause")


def effective_limits(account: Account, action: str) -> Limits:
    """Each value from the account if it has one, else from its profile, else from the settings."""
    own = Limit.objects.filter(account=account, action=action).first()
    profile = PROFILES[account.profile].limits.get(action, ProfileLimits())
    given = {}
    for name in FIELDS:
        value = getattr(own, name, None)
        value = getattr(profile, name) if value is None else value
        if value is not None:
            given[name] = value
    for name, value in _as_settings_say(profile).items():
        given.setdefault(name, value)
    return _warmed_up(Limits(**given), account)


def _as_settings_say(profile: ProfileLimits) -> dict[str, float]:
    """What a profile leaves to the settings."""
    values: dict[str, float] = {"per_minute": settings.MAX_PER_MINUTE}
    if profile.fixed_delay:
        values |= {"gap_min": settings.FIXED_DELAY_SECONDS, "gap_max": settings.FIXED_DELAY_SECONDS}
    if profile.batches:
        values |= {"batch_size": settings.BATCH_SIZE, "batch_pause": settings.BATCH_PAUSE_SECONDS}
    return values


def _warmed_up(limits: Limits, account: Account) -> Limits:
    """A new account's day has a cap of its own that grows with every clean day."""
    if account.warmup_start is None or account.warmup_step is None or account.warmup_ceiling is None:
        return limits
    cap = min(account.warmup_ceiling, account.warmup_start + account.warmup_step * account.warmup_clean_days)
    return Limits(
        **{name: getattr(limits, name) for name in FIELDS} | {"per_day": min(limits.per_day or cap, cap)}
    )


def day_of(account: Account, now: datetime) -> Day:
    """The calendar day of the account's zone that holds `now`."""
    zone = ZoneInfo(account.zone)
    midnight = now.astimezone(zone).replace(hour=0, minute=0, second=0, microsecond=0, fold=0)
    following = (midnight + timedelta(days=1, hours=12)).replace(hour=0)
    return Day(start_ms=int(midnight.timestamp() * 1000), end_ms=int(following.timestamp() * 1000))
