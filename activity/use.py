"""How much of their limits the accounts have used today, those nearest to their end first.

The limiter knows, in one round trip for all accounts. For those that it has forgotten, the ledger is counted,
in one query and only as far as it matters.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.conf import settings
from django.db import connection
from django.db.models import Case, Value, When

from accounts.models import Account, User
from accounts.roles import visible
from activity.filters import ACTIONS
from config.redis import client
from delivery.limiter import Day, Limiter, Use
from delivery.limits import day_of, limits_of, merged
from delivery.pacing import Limits, pace_of

SHOWN = 5
ASKED = 200  # accounts; those that a limit holds back now are among them
COUNTED = 5_000  # messages of an account that the limiter has forgotten

NOUNS = {"message": "Messages", "email": "E-mails", "connection_request": "Invitations", "inmail": "InMails"}
HELD = ("per_day", "per_hour", "per_minute")

COUNT = """
SELECT asked.account, asked.action, counted.messages
FROM unnest(%(accounts)s::bigint[], %(actions)s::text[], %(since)s::timestamptz[]) AS asked(account, action, since)
CROSS JOIN LATERAL (
    SELECT count(*) AS messages FROM (
        SELECT 1 FROM activity_attempt
        WHERE account_id = asked.account AND action = asked.action AND at >= asked.since LIMIT %(most)s
    ) today
) counted
"""

Key = tuple[int, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Gauge:
    """One limit and what is used of it; `most` is None where there is none."""

    label: str
    used: int
    most: int | None

    @property
    def share(self) -> float:
        return self.used / self.most if self.most else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountUse:
    account: Account
    limits: tuple[Gauge, ...]

    @property
    def share(self) -> float:
        return max(gauge.share for gauge in self.limits)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    account: Account
    action: str
    limits: Limits
    day: Day

    @property
    def key(self) -> Key:
        return self.account.pk, self.action


def nearest_to_their_limits(user: User, now: datetime) -> list[AccountUse]:
    accounts = _candidates(user)
    questions = _questions(accounts, now)
    used = _used(questions)
    by_account: dict[int, list[Gauge]] = {account.pk: [] for account in accounts}
    for question in questions:
        by_account[question.account.pk] += _gauges(question, used[question.key])
    found = [AccountUse(account=account, limits=tuple(by_account[account.pk])) for account in accounts]
    return sorted(found, key=lambda each: (-each.share, each.account.name))[:SHOWN]


def _candidates(user: User) -> list[Account]:
    """Those that can send; first those that a limit holds back."""
    rows = visible(Account.objects.active().filter(archived_at=None).defer("credentials"), user)
    held = Case(When(waiting_for__in=HELD, then=Value(0)), default=Value(1))
    return list(rows.order_by(held, "-wake_at", "name")[:ASKED])


def _questions(accounts: Sequence[Account], now: datetime) -> list[Question]:
    own = limits_of(accounts)
    return [
        Question(
            account=account,
            action=action,
            limits=merged(account, action, own.get((account.pk, action))).limits,
            day=day_of(account, now),
        )
        for account in accounts
        for action in ACTIONS[account.channel]
    ]


def _used(questions: Sequence[Question]) -> Mapping[Key, Use]:
    minute_ms = int(settings.MINUTE_SECONDS * 1000)
    limiter = Limiter(client(), minute_ms=minute_ms, hour_ms=60 * minute_ms)
    answers = limiter.peek_all([(*q.key, pace_of(q.limits), q.day) for q in questions])
    known = {q.key: answer for q, answer in zip(questions, answers, strict=True) if isinstance(answer, Use)}
    return known | _counted([q for q in questions if q.key not in known])


def _counted(questions: Sequence[Question]) -> dict[Key, Use]:
    """By the ledger. A limiter that forgot an account has not let it send for a while."""
    if not questions:
        return {}
    asked: dict[str, Any] = {
        "accounts": [q.account.pk for q in questions],
        "actions": [q.action for q in questions],
        "since": [datetime.fromtimestamp(q.day.start_ms / 1000, UTC) for q in questions],
        "most": COUNTED,
    }
    with connection.cursor() as cursor:
        cursor.execute(COUNT, asked)
        return {
            (account, action): Use(minute=0, hour=0, day=count, free_at_ms=0, held_until_ms=0)
            for account, action, count in cursor.fetchall()
        }


def _gauges(question: Question, use: Use) -> list[Gauge]:
    """The day always; the hour where it has a limit, the minute where nothing longer has.

    The limiter counts permits of the next moments too, and never grants more than the limit in any one span.
    """
    noun, limits = NOUNS[question.action], question.limits
    gauges = [Gauge(label=f"{noun} today", used=use.day, most=limits.per_day)]
    if limits.per_hour:
        gauges.append(
            Gauge(label=f"{noun} this hour", used=min(use.hour or 0, limits.per_hour), most=limits.per_hour)
        )
    elif limits.per_minute and not limits.per_day:
        most = limits.per_minute
        gauges.append(Gauge(label=f"{noun} this minute", used=min(use.minute or 0, most), most=most))
    return gauges
