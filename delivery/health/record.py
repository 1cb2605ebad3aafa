"""Writes an account's health and its history. Each change is made once, whoever else judges at the same time."""

from datetime import datetime
from typing import Any

from django.utils import timezone

from accounts.models import Account, HealthChange, User
from delivery.health import counts

Health = Account.Health
Move = HealthChange.Move
TIME_IS_OVER = "Its time was over."


def slow_down(account: Account, *, reason: str) -> bool:
    return _change(
        account, Move.SLOWED, reason, before=[Health.GOOD], health=Health.SLOW, health_reason=reason
    )


def pause(account: Account, *, reason: str, until: datetime) -> bool:
    values: dict[str, Any] = {"health": Health.PAUSED, "health_reason": reason, "health_until": until}
    return _change(account, Move.PAUSED, reason, before=[Health.GOOD, Health.SLOW], **values)


def recover(account: Account, *, why: str) -> bool:
    return _change(account, Move.RECOVERED, why, before=[Health.SLOW], health=Health.GOOD, health_reason="")


def lift(account: Account, *, by: User | None) -> bool:
    """Let an account start afresh: what happened so far no longer counts. Return whether anything was lifted."""
    now = timezone.now()
    fresh = {"health_from": counts.today(account, now), "health_base": counts.of_today(account, now=now)}
    values: dict[str, Any] = {"health": Health.GOOD, "health_reason": "", "health_until": None, **fresh}
    why = f"Lifted by {by}." if by else TIME_IS_OVER
    return _change(account, Move.LIFTED, why, before=[Health.SLOW, Health.PAUSED], by=by, **values)


def _change(
    account: Account,
    move: HealthChange.Move,
    why: str,
    *,
    before: list[Account.Health],
    by: User | None = None,
    **values: Any,
) -> bool:
    if not Account.objects.filter(pk=account.pk, health__in=before).update(**values):
        return False
    for name, value in values.items():
        setattr(account, name, value)
    HealthChange.objects.create(account=account, move=move, at=timezone.now(), why=why[:500], by=by)
    return True
