"""Saves the limits that a person gives an account."""

from collections.abc import Iterable

from django.db import transaction

from accounts.models import Account, Limit, User
from accounts.roles import require_touch
from delivery.engine import wakeups
from delivery.limits.lookup import FIELDS


@transaction.atomic
def save_limits(account: Account, limits: Iterable[Limit], *, by: User) -> None:
    """Save the account's own limits; delete the row of an action for which none is left. They apply at once."""
    require_touch(account, by)
    for limit in limits:
        if any(getattr(limit, name) is not None for name in FIELDS):
            limit.save()
        elif limit.pk:
            limit.delete()
    wakeups.wake_on_commit([account.pk])
