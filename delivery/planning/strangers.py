"""Counts recipients who are new to their account, and says when the last of them gets the message (SPEC N4)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from django.db import connection

from accounts.models import Account
from activity.components import times
from delivery.audience import REFUSED, WANTED
from delivery.engine.claims import KNOWN
from delivery.engine.newness import IS_NEW, Newness, newness
from delivery.models import Run
from delivery.pacing import Limits, pace_of
from delivery.planning.values import PauseCause, Timeline
from delivery.planning.words import Forecast, next_minute
from delivery.senders.deal import Deal, dealt


@dataclass(frozen=True, slots=True, kw_only=True)
class Strangers:
    """How many recipients of an account are new to it; `chats` of them begin a new chat of the service's own quota."""

    new: int = 0
    chats: int = 0


WAITS = frozenset({PauseCause.NEW_PEOPLE, PauseCause.NEW_CHATS})
Count = Callable[[Account, Newness, bool], Strangers]  # the last one says whether new chats are counted

COUNTS = f"SELECT count(*), count(*) FILTER (WHERE %(counts_chats)s AND NOT {KNOWN})"
OF_RUN = f"""
{COUNTS} FROM delivery_runtarget t JOIN accounts_recipient p ON p.id = t.recipient_id
WHERE t.account_id = %(account)s AND t.run_id = %(run)s AND t.status = 'pending' AND {IS_NEW}
"""
OF_AUDIENCE = f"""
{COUNTS} FROM ({{dealt}}) t JOIN accounts_recipient p ON p.id = t.recipient_id
WHERE t.refused = '' AND t.account_id = %(account)s AND {IS_NEW}
"""


# About as many as `audience.SIZES` counts.
OF_REMINDERS = f"""
SELECT wanted.id, (
    SELECT count(*) FROM (
        SELECT named.recipient_id FROM reminders_reminder_recipients named WHERE named.reminder_id = wanted.id
        UNION ALL
        SELECT tagged.recipient_id FROM reminders_reminder_tags chosen
        JOIN accounts_recipient_tags tagged ON tagged.tag_id = chosen.tag_id WHERE chosen.reminder_id = wanted.id
        LIMIT %(most)s
    ) counted JOIN accounts_recipient p ON p.id = counted.recipient_id WHERE {IS_NEW}
)
FROM unnest(%(reminders)s::bigint[]) AS wanted(id)
"""  # noqa: S608 - made of constants


def of_reminders(
    reminder_ids: Sequence[int], account: Account, *, most: int, now: datetime
) -> dict[int, int]:
    """Return about how many recipients of each reminder are new to an account, among up to `most` of each."""
    who = newness(account, pace_of(Limits()), now=now)
    with connection.cursor() as cursor:
        cursor.execute(OF_REMINDERS, {"reminders": list(reminder_ids), "most": most, **who.arguments})
        return dict(cursor.fetchall())


def of_run(run: Run) -> Count:
    return lambda _, who, chats: _count(OF_RUN, {"run": run.pk, "counts_chats": chats}, who)


def of_audience(reminder_id: int, deal: Deal) -> Count:
    statement = OF_AUDIENCE.replace("{dealt}", dealt(WANTED.format(refused=REFUSED, more=""), deal))
    arguments = {"reminder": reminder_id, **deal.arguments}
    return lambda _, who, chats: _count(statement, {**arguments, "counts_chats": chats}, who)


def _count(statement: str, arguments: Mapping[str, Any], who: Newness) -> Strangers:
    with connection.cursor() as cursor:
        cursor.execute(statement, {**arguments, **who.arguments})
        new, chats = cursor.fetchone()
    return Strangers(new=new, chats=chats)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shy:
    """An account that may not write to all new people at once: how many it has, its limits and its part of the run."""

    account: Account
    strangers: Strangers
    limits: Limits
    timeline: Timeline
    chats_left: int | None  # of the service's own quota

    @property
    def last(self) -> datetime | None:
        """Return when the last new person gets the message; None if not within a year."""
        people = self.timeline.people
        return people[-1].at if people and people[-1].done == self.strangers.new else None


def told(forecast: Forecast, shy: Shy, *, now: datetime) -> str:
    """Return the sentence about the new people of an account; empty where none of them has to wait."""
    waits = any(pause.cause in WAITS for pause in shy.timeline.pauses)
    if shy.last is None or not waits:
        return ""
    zone = ZoneInfo(forecast.window.zone)
    finish = times.clock(next_minute(shy.last).astimezone(zone), now, weekday=True)
    new, whole = shy.strangers.new, forecast.targets
    return f"{new:,} of {whole:,} are new to {shy.account}: {_pace(shy)}, finished about {finish} ({zone})."


def _pace(shy: Shy) -> str:
    limits = shy.limits
    paces = [f"{limits.new_per_day:,} a day"] if limits.new_per_day else []
    paces += [f"{limits.new_per_week:,} a week"] if limits.new_per_week and not paces else []
    if shy.chats_left is not None and shy.strangers.chats > shy.chats_left:
        paces.append(f"{shy.chats_left:,} new chats are left of the service's own limit")
    return ", ".join(paces) or "the service allows no new chats before then"
