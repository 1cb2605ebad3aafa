"""Says in SQL who is new to an account (SPEC N1), and in which spans a person still counts (N2).

A person is known to an account if they wrote to it within KNOWN_DAYS. Groups, rooms and the subscribers of a newsletter
are always known: level 0. The level of a new person says what one more message uses up: 3 nothing, they were counted
today; 1 a place of the day, since the week has counted them; 2 places of the day and of the week. The place of a person
in the week moves with each message: it is free when the last one has left the week.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings

from accounts.models import Account
from accounts.profiles import PROFILES
from activity.ledger import NEVER_LEFT_SQL
from delivery.pacing import WEEK_HOURS, Pace
from delivery.window import window_start_at

ANEW, COUNTED_TODAY = 2, 3
NEEDS_RIGHT = frozenset({1, ANEW})

# Of the recipient `p`. The first look is at its own row: few people wrote lately, and only these are looked up.
IS_NEW = """
(p.kind NOT IN ('group', 'room') AND NOT %(subscribers)s AND NOT (
    COALESCE(p.last_inbound_at >= %(known_since)s, false) AND EXISTS (
        SELECT 1 FROM activity_inbound i
        WHERE i.recipient_id = p.id AND i.account_id = %(account)s AND i.kind = 'message' AND i.at >= %(known_since)s
    )
))
"""
# When they got their last message as a new person, within the week.
LAST_MET = f"""
(
    SELECT max(a.at + a.took_ms * interval '1 millisecond')
    FROM delivery_runtarget e JOIN activity_attempt a ON a.target_id = e.id
    WHERE e.recipient_id = p.id AND e.account_id = %(account)s AND a.new_person > 0 AND a.at >= %(since)s
      AND a.outcome NOT IN ({NEVER_LEFT_SQL})
)
"""  # noqa: S608 - made of constants
# From `met`, which is LAST_MET of the person where people are counted.
LEVEL_OF = f"""
CASE WHEN NOT {IS_NEW} THEN 0
     WHEN NOT %(counts_people)s THEN 2
     WHEN met.last >= %(today)s THEN 3
     WHEN met.last >= %(week)s THEN 1
     ELSE 2 END
"""
LEVEL = f"(SELECT {LEVEL_OF} FROM (SELECT CASE WHEN %(counts_people)s AND {IS_NEW} THEN {LAST_MET} END AS last) met)"  # noqa: S608 - made of constants


@dataclass(frozen=True, slots=True, kw_only=True)
class Newness:
    """Facts that decide who is new to an account at a moment.

    At most `most_new` targets that are claimed go to new people, `most_anew` of them to people whom the week has not
    counted; None is no limit.
    """

    account_id: int
    known_since: datetime
    subscribers: bool
    counts_people: bool
    today: datetime
    week: datetime
    most_new: int | None = None
    most_anew: int | None = None

    @property
    def arguments(self) -> dict[str, Any]:
        """Return the arguments of LEVEL."""
        return {
            "account": self.account_id,
            "known_since": self.known_since,
            "subscribers": self.subscribers,
            "counts_people": self.counts_people,
            "today": self.today,
            "week": self.week,
            "since": min(self.today, self.week),
        }


def newness(account: Account, pace: Pace, *, now: datetime) -> Newness:
    """Return what decides who is new to the account now."""
    week = timedelta(seconds=WEEK_HOURS * 60 * settings.MINUTE_SECONDS)
    return Newness(
        account_id=account.pk,
        known_since=now - timedelta(days=settings.KNOWN_DAYS),
        subscribers=PROFILES[account.profile].subscribers,
        counts_people=pace.counts_people,
        today=window_start_at(account.zone, 0, now),
        # Less than the limiter's week: who counts here has a place there.
        week=now - week + timedelta(seconds=settings.MINUTE_SECONDS),
    )


def nobody_new(account_id: int, now: datetime) -> Newness:
    """Return what makes everybody known."""
    return Newness(
        account_id=account_id, known_since=now, subscribers=True, counts_people=False, today=now, week=now
    )
