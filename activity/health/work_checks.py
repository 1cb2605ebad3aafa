"""Checks that waiting work is served: shares of accounts, wake-ups, the media, the tables of the ledger.

Pages can be served without any of it, so none of these takes a web server out of service.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import psycopg

from activity.health.check import Check
from activity.health.workers import Report
from activity.heartbeats import media_place
from activity.media_marker import Marker

OVERDUE_SECONDS = 60
NAMED = 5  # accounts that one sentence names

ASK = """
SELECT COALESCE(array_agg(id ORDER BY id), '{}'),
       count(*) FILTER (WHERE wake_at < now() - make_interval(secs => %(overdue)s)),
       COALESCE(extract(epoch FROM now() - min(wake_at)), 0),
       count(*) FILTER (WHERE waiting_for = 'no_worker')
FROM accounts_account WHERE wake_at IS NOT NULL
"""
REST = "SELECT EXISTS (SELECT 1 FROM activity_attempt_rest)"
STOPS = "SELECT count(*) FROM accounts_sendingstop WHERE ended_at IS NULL"


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """The facts in the database about accounts that have something to send."""

    accounts: Sequence[int] = ()
    overdue: int = 0  # whose wake-up is more than a minute past
    oldest: int = 0  # seconds that the oldest wake-up is past
    unanswered: int = 0  # accounts whose pumps no worker takes
    outside: bool = False  # whether the ledger has rows outside the tables of its months
    stops: int = 0  # stops of sending, see delivery/recovery/stop_sending.py


def ask(link: "psycopg.Connection[Any]") -> Work:
    row = link.execute(ASK, {"overdue": OVERDUE_SECONDS}).fetchone()
    stops, rest = link.execute(STOPS).fetchone(), link.execute(REST).fetchone()
    if row is None or stops is None or rest is None:
        return Work()
    return Work(
        accounts=row[0],
        overdue=row[1],
        oldest=max(0, int(row[2])),
        unanswered=row[3],
        outside=rest[0],
        stops=stops[0],
    )


def judge(work: Work, reports: Sequence[Report], *, marker: Marker) -> tuple[Check, ...]:
    """Return the checks. The media are compared once every worker has had the time to read the marker."""
    return (_shares(work, reports), _wake_ups(work), _ledger(work), _media(reports, marker))


def unserved(accounts: Sequence[int], reports: Sequence[Report]) -> list[int]:
    """Return the accounts that no worker serves."""
    return [account for account in accounts if not any(report.share.holds(account) for report in reports)]


def _shares(work: Work, reports: Sequence[Report]) -> Check:
    alone = unserved(work.accounts, reports)
    if not alone or not reports:  # without any worker, the check of workers says so
        return Check(name="shares", ok=True, detail="every account with work has a worker", needed=False)
    named = ", ".join(str(account) for account in alone[:NAMED]) + (" ..." if len(alone) > NAMED else "")
    served = ", ".join(sorted({f"{report.share.index}/{report.share.of}" for report in reports}))
    return Check(
        name="shares",
        ok=False,
        detail=f"no worker serves {_accounts(len(alone))} with work ({named}): workers have the shares {served}",
        needed=False,
    )


def _wake_ups(work: Work) -> Check:
    """Check wake-ups: an unseen one stays in the past; one that is seen but whose pump no worker takes moves on."""
    said = []
    if work.overdue:
        said.append(f"{_accounts(work.overdue)} should have been looked at, the first {work.oldest} s ago")
    if work.unanswered:
        said.append(f"no worker takes up {_accounts(work.unanswered)} with work")
    detail = "; ".join(said) or "no account waits for its turn too long"
    return Check(name="wake_ups", ok=not said, detail=detail, needed=False)


def _media(reports: Sequence[Report], marker: Marker) -> Check:
    if marker.problem:
        return Check(
            name="media",
            ok=False,
            detail="this process cannot use the place of the media",
            cause=f"{media_place()}: {marker.problem}",
            needed=False,
        )
    blind = [report.name for report in reports if marker.settled and report.media != marker.text]
    if not blind:
        return Check(name="media", ok=True, detail="all see the same files", needed=False)
    return Check(
        name="media",
        ok=False,
        detail=f"{len(blind)} of {len(reports)} workers do not see the media that this process sees",
        cause=f"Workers: {', '.join(blind)}. This process looks at the {media_place()}.",
        needed=False,
    )


def _ledger(work: Work) -> Check:
    """Check that beat makes the ledger's tables of the months in time. Sending goes on without them."""
    detail = (
        "messages are recorded outside the tables of their months"
        if work.outside
        else "has its tables of the months"
    )
    return Check(name="ledger", ok=not work.outside, detail=detail, needed=False)


def _accounts(count: int) -> str:
    return "1 account" if count == 1 else f"{count:,} accounts"
