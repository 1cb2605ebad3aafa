"""Says in a forecast how many recipients are new to their account, and when the last gets the message (SPEC N4)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from django.db import connection

from accounts.models import Account
from activity.components import times
from delivery.audience import REFUSED, WANTED
from delivery.engine.newness import IS_NEW, Newness, newness
from delivery.models import Run
from delivery.pacing import Limits, pace_of
from delivery.planning import new_people
from delivery.planning.diary import NoRoomError
from delivery.planning.values import Point
from delivery.planning.words import Forecast
from delivery.senders.deal import Deal, dealt
from delivery.window import Window

Count = Callable[[Account, Newness], int]  # how many of an account's recipients are new to it

OF_RUN = f"""
SELECT count(*) FROM delivery_runtarget t JOIN accounts_recipient p ON p.id = t.recipient_id
WHERE t.account_id = %(account)s AND t.run_id = %(run)s AND t.status = 'pending' AND {IS_NEW}
"""  # noqa: S608 - made of constants
OF_AUDIENCE = f"""
SELECT count(*) FROM ({{dealt}}) dealt JOIN accounts_recipient p ON p.id = dealt.recipient_id
WHERE dealt.refused = '' AND dealt.account_id = %(account)s AND {IS_NEW}
"""  # noqa: S608 - made of constants


def of_run(run: Run) -> Count:
    return lambda _, who: _count(OF_RUN, {"run": run.pk}, who)


def of_audience(reminder_id: int, deal: Deal) -> Count:
    statement = OF_AUDIENCE.replace("{dealt}", dealt(WANTED.format(refused=REFUSED, more=""), deal))
    return lambda _, who: _count(statement, {"reminder": reminder_id, **deal.arguments}, who)


def _count(statement: str, arguments: Mapping[str, Any], who: Newness) -> int:
    with connection.cursor() as cursor:
        cursor.execute(statement, {**arguments, **who.arguments})
        (count,) = cursor.fetchone()
    return int(count)


@dataclass(frozen=True, slots=True, kw_only=True)
class Whose:
    """An account with its limits for an action, and the run, if it exists already."""

    account: Account
    action: str
    limits: Limits
    run: Run | None


def told(forecast: Forecast, whose: Whose, count: Count, *, window: Window, now: datetime) -> Forecast:
    """Return the forecast with the new people of an account, where these take longer than one day."""
    account, action, limits, run = whose.account, whose.action, whose.limits, whose.run
    who = newness(account, pace_of(limits), now=now)
    if not who.counts_people or who.subscribers or not (new := count(account, who)):
        return forecast
    try:
        slots = new_people.slots(
            window, account, action, limits, new, now=max(now, forecast.fires_at), but=run.pk if run else None
        )
    except NoRoomError:
        return forecast
    last = slots[-1].at
    in_window = last < forecast.closes_at  # which never closes, or spans midnight
    if in_window and len(slots) == 1:
        return forecast
    zone = ZoneInfo(window.zone)
    finish = times.clock(last.astimezone(zone), now, weekday=True)
    curve = [point for point in forecast.timeline.curve if point.at < slots[0].at] or [
        Point(at=slots[0].at, done=0)
    ]
    known, done = forecast.targets - new, 0
    curve.append(Point(at=slots[0].at, done=max(known, curve[-1].done)))
    for slot in slots:
        done += slot.targets
        curve.append(Point(at=slot.at, done=known + done))
    return replace(
        forecast,
        fits=forecast.fits and in_window,
        sentence=f"{new:,} of {forecast.targets:,} are new to {account}: {_pace(limits)}, "
        f"finished about {finish} ({zone}).",
        suggestion="Add another account, or choose fewer people who have not written to this one.",
        timeline=replace(
            forecast.timeline,
            finishes_at=max(last, forecast.timeline.finishes_at or last),
            curve=tuple(sorted(curve, key=lambda point: (point.at, point.done))),
        ),
    )


def _pace(limits: Limits) -> str:
    if limits.new_per_day:
        return f"{limits.new_per_day:,} a day"
    return f"{limits.new_per_week or 0:,} a week"
