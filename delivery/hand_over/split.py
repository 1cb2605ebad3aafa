"""Splits the pending targets of a run into those that move to other accounts and those that stay, in SQL.

A target stays where it is if

1. a part of it has been sent: the rest comes from the same account;
2. a message to it is in doubt: only the account that tried can try again with the same key;
3. it is a group, or reached by one account alone, and none of the others is known to be a member;
4. its recipient has talked with its account, unless the person asked for these too.

Targets that are being sent or are unconfirmed are not pending, and so never move.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from django.db import connection

from delivery.models import Run
from delivery.planning import rooms
from delivery.senders.deal import Deal, dealt


class Stays(StrEnum):
    """The reasons why a target stays with its account."""

    BEGUN = "begun"
    IN_DOUBT = "in doubt"
    NOT_A_MEMBER = "not a member"
    KNOWN = "known"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """The wish of a person: to which accounts, whether known people go too, and from which account, if not all."""

    to: Sequence[int]
    known: bool = False
    of: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """How many targets move to each account, how many of these are people, and how many stay, by account and reason."""

    moves: Mapping[int, int] = field(default_factory=dict)
    people: Mapping[int, int] = field(default_factory=dict)
    stays: Mapping[tuple[int, Stays], int] = field(default_factory=dict)
    keeps: Mapping[int, int] = field(default_factory=dict)  # those dealt to the account that has them

    @property
    def moved(self) -> int:
        return sum(self.moves.values())

    @property
    def stayed(self) -> Counter[Stays]:
        """Return how many stay, by reason."""
        found = Counter[Stays]()
        for (_, why), count in self.stays.items():
            found[why] += count
        return found

    @property
    def left(self) -> Counter[int]:
        """Return how many each of the present accounts still has afterwards."""
        found = Counter(self.keeps)
        for (account_id, _), count in self.stays.items():
            found[account_id] += count
        return found


# LIMIT keeps PostgreSQL from reading all contacts there are, as it does for a mere EXISTS that it expects to ask often,
# and OFFSET from finding out once for each place where an answer is used.
#
# A recipient that a person chose for one account, and a group, goes to an account that is known to reach it.
ROWS = f"""
    SELECT t.id AS key, t.recipient_id, t.account_id AS was, p.kind IN ('group', 'room') AS is_group,
           reach.account_id AS fixed,
           CASE WHEN t.parts_done > 0 THEN '{Stays.BEGUN}'
                WHEN t.id IN (
                    SELECT a.target_id FROM activity_attempt a
                    WHERE a.run_id = %(run)s AND a.outcome = 'unknown' AND a.target_id IS NOT NULL
                ) THEN '{Stays.IN_DOUBT}'
                WHEN tied.so AND reach.account_id IS NULL THEN '{Stays.NOT_A_MEMBER}'
                WHEN NOT tied.so AND NOT %(known)s AND (
                    SELECT true FROM accounts_contact met WHERE met.recipient_id = t.recipient_id
                      AND met.account_id = t.account_id AND met.talked_at IS NOT NULL LIMIT 1
                ) IS NOT NULL THEN '{Stays.KNOWN}'
                ELSE '' END AS refused
    FROM delivery_runtarget t
    JOIN accounts_recipient p ON p.id = t.recipient_id
    CROSS JOIN LATERAL (SELECT p.account_id IS NOT NULL OR p.kind IN ('group', 'room') AS so) tied
    LEFT JOIN LATERAL (
        SELECT member.id AS account_id FROM unnest(%(to)s::bigint[]) member(id)
        WHERE tied.so AND (member.id = p.account_id OR EXISTS (
            SELECT 1 FROM accounts_contact c
            WHERE c.recipient_id = p.id AND c.account_id = member.id AND c.member_at IS NOT NULL
        ))
        ORDER BY hashint8(t.id # member.id) LIMIT 1
    ) reach ON true
    WHERE t.run_id = %(run)s AND t.status = 'pending' AND t.account_id = ANY(%(from)s::bigint[])
    OFFSET 0
"""  # noqa: S608 - made of constants
COUNT = """
SELECT was, CASE WHEN refused = '' THEN account_id END, refused, count(*), count(*) FILTER (WHERE NOT is_group)
FROM ({dealt}) dealt GROUP BY 1, 2, 3
"""
# The times of a reminder's run were made for another account: a drip is planned anew, and all else may leave now. Other
# runs keep theirs, which a person may have chosen.
MOVE = """
UPDATE delivery_runtarget t
SET account_id = dealt.account_id, fence = NULL, claimed_at = NULL, new_person = 0, error = '',
    not_before = CASE WHEN %(keeps_times)s THEN t.not_before ELSE %(now)s END
FROM ({dealt}) dealt
WHERE t.id = dealt.key AND dealt.refused = '' AND dealt.account_id <> t.account_id AND t.status = 'pending'
"""


def count(run: Run, wish: Wish, sources: Collection[int], *, now: datetime) -> Split:
    """Return how the run's pending targets would be split now."""
    statement, arguments = _statement(COUNT, run, wish, sources, now=now)
    moves, people, keeps = Counter[int](), Counter[int](), Counter[int]()
    stays = Counter[tuple[int, Stays]]()
    with connection.cursor() as cursor:
        cursor.execute(statement, arguments)
        for was, account_id, refused, number, persons in cursor.fetchall():
            if refused:
                stays[was, Stays(refused)] += number
            elif account_id == was:
                keeps[was] += number
            else:
                moves[account_id] += number
                people[account_id] += persons
    return Split(moves=dict(moves), people=dict(people), stays=dict(stays), keeps=dict(keeps))


def move(run: Run, wish: Wish, sources: Collection[int], *, now: datetime) -> int:
    """Move the targets; return how many. The caller holds the run's lock, so that nobody claims any meanwhile."""
    statement, arguments = _statement(MOVE, run, wish, sources, now=now)
    arguments["keeps_times"] = run.kind != Run.Kind.REMINDER
    with connection.cursor() as cursor:
        cursor.execute(statement, arguments)
        return int(cursor.rowcount)


def _statement(
    template: str, run: Run, wish: Wish, sources: Collection[int], *, now: datetime
) -> tuple[str, dict[str, Any]]:
    deal = _deal(run, wish, now=now)
    arguments: dict[str, Any] = {
        "run": run.pk,
        "to": list(wish.to),
        "from": list(sources),
        "known": wish.known,
        "now": now,
        **deal.arguments,
    }
    return template.replace("{dealt}", dealt(ROWS, deal)), arguments


def _deal(run: Run, wish: Wish, *, now: datetime) -> Deal:
    """Return the deal among the accounts to move to; what the run itself has left takes up no room."""
    read = rooms.read([(wish.to, run.action)], now=now, but=run)
    return read.deal(wish.to, run.action, parts=len(run.parts))
