"""Shows how much of their limits the accounts have used today, those nearest to their limits first."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Case, Value, When

from accounts.models import Account, User
from accounts.roles import visible
from activity.pages.runs.filters import ACTIONS
from delivery.limits import lookup, usage
from delivery.limits.usage import Gauge, Used
from delivery.pacing import LONG_SPANS, Limits

SHOWN = 5
ASKED = 200  # accounts; those that a limit holds back now are among them
COUNTED = 5_000  # messages of an account that the limiter has forgotten

HELD = (*LONG_SPANS, "per_day", "per_hour", "per_minute")


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountUse:
    """An account and the gauges of its limits."""

    account: Account
    gauges: tuple[Gauge, ...]

    @property
    def share(self) -> float:
        return max(gauge.share for gauge in self.gauges)


def nearest_to_their_limits(user: User, now: datetime) -> list[AccountUse]:
    """Return the `SHOWN` accounts that have used the largest share of a limit."""
    accounts = _candidates(user)
    which = [(account, action) for account in accounts for action in ACTIONS[account.channel]]
    limits = lookup.limits_for(which)
    used = usage.used_now(which, limits, now=now, most=COUNTED)
    found = [AccountUse(account=account, gauges=_gauges(account, used, limits)) for account in accounts]
    return sorted(found, key=lambda each: (-each.share, each.account.name))[:SHOWN]


def _candidates(user: User) -> list[Account]:
    """Return accounts that can send; first those that a limit holds back."""
    rows = visible(Account.objects.active().filter(archived_at=None).defer("credentials"), user)
    held = Case(When(waiting_for__in=HELD, then=Value(0)), default=Value(1))
    return list(rows.order_by(held, "-wake_at", "name")[:ASKED])


def _gauges(
    account: Account, used: Mapping[usage.Key, Used], limits: Mapping[usage.Key, Limits]
) -> tuple[Gauge, ...]:
    """Return gauges of the day always, of the hour where it has a limit, of the minute where nothing longer has."""
    found = []
    for action in ACTIONS[account.channel]:
        spent, held = used[account.pk, action], limits[account.pk, action]
        found.append(usage.day_gauge(action, spent, held))
        if held.per_hour:
            found.append(usage.hour_gauge(action, spent, held))
        elif held.per_minute and not held.per_day:
            found.append(usage.minute_gauge(action, spent, held))
        found += usage.long_gauges(action, spent, held)
    return tuple(found)
