"""How many a reminder reaches, for pages.

A short audience is counted each time. Counting a long one takes longer than a page may, so what was counted is kept
for a few minutes, and forgotten when somebody chooses otherwise. A page that shows a number which is not fresh asks
for it to be counted again (static/js/recount.js). What is sent never depends on it: a run is made of the rows.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime, timedelta

import structlog
from django.db.models import Model, QuerySet
from django.utils import timezone
from redis.exceptions import RedisError

from config.redis import client
from delivery import audience
from delivery.audience import Audience
from reminders.lacking import NOTHING, Texts, texts_of
from reminders.models import Reminder

log = structlog.get_logger(__name__)

KEPT_ABOVE = 5_000  # recipients
KEPT_SECONDS = 600
FRESH = timedelta(seconds=15)


def account_ids(reminder: Reminder) -> list[int]:
    """In the order in which targets are dealt."""
    shares = reminder.reminder_accounts.order_by("position", "id")
    return list(shares.values_list("account_id", flat=True))


def headcount(
    reminder: Reminder, accounts: Sequence[int] | None = None, *, texts: Texts | None = None
) -> Audience:
    """Whom it would reach, and who lacks a variable of what it says, or of what it would say."""
    accounts = account_ids(reminder) if accounts is None else accounts
    losses = (texts or texts_of(reminder)).losses
    return _kept(reminder, accounts, losses) or _count(reminder, accounts, losses)


def recount(reminder: Reminder) -> bool:
    """Count again what is kept; whether it is something else by now."""
    accounts, losses = account_ids(reminder), texts_of(reminder).losses
    kept = _kept(reminder, accounts, losses)
    if kept is not None and kept.counted_at is None:
        return False
    return kept is None or replace(kept, counted_at=None) != _count(reminder, accounts, losses)


def forget(reminder: Reminder) -> None:
    """Somebody chose otherwise."""
    try:
        client().delete(_key(reminder))
    except RedisError:
        log.warning("headcount_not_forgotten", reminder=reminder.pk)


def number_of(found: QuerySet[Model], name: str) -> int:
    """How many rows a list has, kept under `name` for a minute where they are many."""
    key = f"paceline:rows:{name}"
    try:
        if kept := client().get(key):
            return int(kept)
        number = found.count()
        if number > KEPT_ABOVE:
            client().set(key, number, ex=60)
    except RedisError:
        return found.count()
    return number


def _count(reminder: Reminder, accounts: Sequence[int], losses: Mapping[str, str]) -> Audience:
    needed = [name for name, loss in losses.items() if loss == NOTHING]
    found = audience.count(reminder.pk, accounts, sorted(losses), needed=needed)
    if found.reached + found.excluded > KEPT_ABOVE:
        _keep(reminder, _print(accounts, losses), found)
    return found


def _keep(reminder: Reminder, print_: str, found: Audience) -> None:
    noted = asdict(found) | {"counted_at": timezone.now().timestamp(), "tied": list(found.tied.items())}
    try:
        pipe = client().pipeline()
        pipe.hset(_key(reminder), print_, json.dumps(noted))
        pipe.expire(_key(reminder), KEPT_SECONDS)
        pipe.execute()
    except RedisError:
        log.warning("headcount_not_kept", reminder=reminder.pk)


def _kept(reminder: Reminder, accounts: Sequence[int], losses: Mapping[str, str]) -> Audience | None:
    try:
        noted = client().hget(_key(reminder), _print(accounts, losses))
    except RedisError:
        return None
    if noted is None:
        return None
    values = json.loads(str(noted, "utf-8") if isinstance(noted, bytes) else str(noted))
    at = datetime.fromtimestamp(values["counted_at"], tz=timezone.get_current_timezone())
    stale = timezone.now() - at > FRESH
    return Audience(**values | {"tied": dict(values["tied"]), "counted_at": at if stale else None})


def _print(accounts: Sequence[int], losses: Mapping[str, str]) -> str:
    """What the count depends on besides who was chosen."""
    said = json.dumps([list(accounts), losses], sort_keys=True)
    return hashlib.sha256(said.encode()).hexdigest()[:16]


def _key(reminder: Reminder) -> str:
    return f"paceline:headcount:{reminder.pk}"
