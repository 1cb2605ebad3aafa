"""Reads the replies of limiter.lua."""

from typing import Any

from delivery.limiter.values import (
    Away,
    Done,
    Forgotten,
    Granted,
    LeaseLost,
    Noted,
    Unit,
    Use,
    Wait,
    WrongClock,
)
from delivery.pacing import Pace
from delivery.states import WaitReason

Reply = list[Any] | Away


def taken(reply: Reply) -> Granted | Wait | WrongClock | LeaseLost | Forgotten | Away:
    match reply:
        case ["granted", now, mark, units, rights, anew]:
            granted = tuple(Unit(at_ms=at, permits=tuple(ids)) for at, ids in units)
            return Granted(units=granted, now_ms=now, mark=mark, rights=tuple(rights), anew=anew)
        case ["wait", now, mark, until, reason]:
            return Wait(until_ms=until, reason=WaitReason(reason), now_ms=now, mark=mark)
        case ["clock", now]:
            return WrongClock(now_ms=now)
        case ["lease_lost"]:
            return LeaseLost()
        case ["forgotten", now]:
            return Forgotten(now_ms=now)
        case _:
            return _away(reply)


def noted(reply: Reply) -> Noted:
    match reply:
        case ["done", mark]:
            return Done(mark=mark)
        case ["lease_lost"]:
            return LeaseLost()
        case ["forgotten", now]:
            return Forgotten(now_ms=now)
        case _:
            return _away(reply)


def use(reply: Reply, pace: Pace) -> Use | Forgotten | Away:
    match reply:
        case ["use", minute, hour, used, planned, free_at, held_until, spans, new_day, people, rights]:
            return Use(
                minute=minute if pace.per_minute or pace.per_hour else None,
                hour=hour if pace.per_hour else None,
                day=used,
                planned=planned,
                free_at_ms=free_at,
                held_until_ms=held_until,
                long=dict(zip(pace.long_caps, spans, strict=True)),
                new_day=new_day if pace.counts_people else 0,
                new_week=next(iter(people), None),
                rights=rights if pace.counts_people else 0,
            )
        case ["forgotten", now]:
            return Forgotten(now_ms=now)
        case _:
            return _away(reply)


def _away(reply: Reply) -> Away:
    if isinstance(reply, Away):
        return reply
    raise AssertionError(f"limiter.lua gave an answer that cannot be read: {reply}")
