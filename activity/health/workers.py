"""Reads the reports of workers about themselves: the accounts they serve, and the media folder they see."""

import json
from dataclasses import dataclass

from redis import Redis

from accounts.share import Share
from activity.heartbeats import FORGET_SECONDS, REPORTS_KEY

LATELY_SECONDS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """One worker that was seen within the last minute."""

    name: str
    share: Share
    media: str
    threads: int = 0
    serving: int = 0  # accounts
    oldest_lease: float = 0.0  # seconds


def told(redis: Redis) -> list[Report]:
    """Return the reports of the last minute, and delete workers that are gone from the list."""
    now = int(redis.time()[0])
    reports = {name: json.loads(report) for name, report in redis.hgetall(REPORTS_KEY).items()}
    if gone := [name for name, report in reports.items() if now - report["at"] > FORGET_SECONDS]:
        redis.hdel(REPORTS_KEY, *gone)
    return [
        Report(
            name=_text(name),
            share=Share.parse(report["share"]),
            media=report["media"],
            # A worker of the release before says nothing about these.
            threads=report.get("threads", 0),
            serving=report.get("serving", 0),
            oldest_lease=report.get("oldest_lease", 0.0),
        )
        for name, report in sorted(reports.items())
        if now - report["at"] <= LATELY_SECONDS
    ]


def _text(name: bytes | str) -> str:
    return name.decode() if isinstance(name, bytes) else name
