"""Saves the limits and the working hours that a person gives an account."""

from collections.abc import Iterable

from django.db import transaction

from accounts.models import Account, Limit, Role, User
from accounts.roles import require_touch
from audit.record import differing, record, stored, values_of
from delivery.engine import wakeups
from delivery.limits.lookup import FIELDS, merged

HOURS = ("work_start_hour", "work_end_hour", "work_days")
FAR = 2  # times the value of the profile
CAPS = {
    "per_minute": "per minute",
    "per_hour": "per hour",
    "per_day": "per day",
    "per_24_hours": "per 24 hours",
    "per_7_days": "per 7 days",
    "per_30_days": "per 30 days",
}


def far_above(limit: Limit) -> list[str]:
    """Return a warning for each of an account's own limits that is far above that of its profile."""
    usual = merged(limit.account, limit.action, None).limits
    found = []
    for name, words in CAPS.items():
        own, inherited = getattr(limit, name), getattr(usual, name)
        if own is not None and inherited is not None and own > FAR * inherited:
            found.append(
                f"{own:,} {words} is far above the {inherited:,} of the profile "
                f"“{limit.account.get_profile_display()}”. Services block accounts that send too much."
            )
    return found


@transaction.atomic
def save_limits(account: Account, limits: Iterable[Limit], *, by: User) -> None:
    """Save the account's own limits; delete the row of an action for which none is left. They apply at once."""
    require_touch(account, by, Role.MANAGE)
    for limit in limits:
        old, new = differing(stored(limit, FIELDS), values_of(limit, FIELDS))
        if old or new:
            record("account.limits", account, by=by, before=old, after=new, note=limit.action)
        if any(getattr(limit, name) is not None for name in FIELDS):
            limit.save()
        elif limit.pk:
            limit.delete()
    wakeups.wake_on_commit([account.pk])


@transaction.atomic
def save_hours(account: Account, *, by: User) -> None:
    """Save the account's working hours. They apply at once."""
    require_touch(account, by, Role.MANAGE)
    old, new = differing(stored(account, HOURS), values_of(account, HOURS))
    if new:
        record("account.changed", account, by=by, before=old, after=new)
    account.save(update_fields=HOURS)
    wakeups.wake_on_commit([account.pk])
