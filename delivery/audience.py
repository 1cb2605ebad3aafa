"""Counts the recipients of a reminder, and those who are left out with the reason, before a run is made.

`fanout.py` makes the targets from the same rows by the same rule, so the numbers on a page match the run.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db import connection

# Recipients that are chosen by name or by tag, each once.
AUDIENCE = """
    SELECT recipient_id AS id FROM reminders_reminder_recipients WHERE reminder_id = %(reminder)s
    UNION
    SELECT tagged.recipient_id FROM accounts_recipient_tags tagged
    JOIN reminders_reminder_tags wanted ON wanted.tag_id = tagged.tag_id
    WHERE wanted.reminder_id = %(reminder)s
"""

# The reason why the recipient `p` gets nothing, or ''. The accounts of a reminder are all on one channel.
REFUSED = """
    CASE WHEN p.opted_out_at IS NOT NULL THEN 'opted out'
         WHEN p.blocked_at IS NOT NULL THEN 'blocked'
         WHEN p.undeliverable_at IS NOT NULL THEN 'undeliverable'
         WHEN p.archived_at IS NOT NULL THEN 'no longer reachable'
         WHEN p.problem <> '' THEN p.problem
         WHEN p.channel <> (SELECT channel FROM accounts_account WHERE id = (%(accounts)s::bigint[])[1])
              THEN 'on another channel'
         WHEN p.account_id <> ALL(%(accounts)s) THEN 'reached only by another account'
         ELSE '' END
"""

# The audience, each with the account that would send to it: its own account where it is tied to one, else the accounts
# in turn. Recipients that are tied, or get nothing, do not use up a turn.
DEALT = f"""
    SELECT id, refused,
           CASE WHEN account_id = ANY(%(accounts)s) THEN account_id
                ELSE (%(accounts)s::bigint[])[1 + greatest(turn - 1, 0) %% cardinality(%(accounts)s::bigint[])]
                END AS account_id
    FROM (
        SELECT *, count(*) FILTER (WHERE account_id IS NULL AND refused = '')
                  OVER (ORDER BY id ROWS UNBOUNDED PRECEDING) AS turn
        FROM (
            SELECT p.id, p.account_id, {REFUSED} AS refused
            FROM ({AUDIENCE}) audience JOIN accounts_recipient p ON p.id = audience.id
        ) known
    ) reached
"""  # noqa: S608 - made of constants

# The given recipients, each with the account given for it.
GIVEN = f"""
    SELECT p.id, {REFUSED} AS refused, given.account_id
    FROM unnest(%(recipients)s::bigint[], %(from)s::bigint[]) given(recipient_id, account_id)
    JOIN accounts_recipient p ON p.id = given.recipient_id
"""  # noqa: S608 - made of constants

# All numbers that a page shows about the audience, in one pass over it. `wants` is one column per variable: whether
# its value is missing. A field goes before the column of the same name, as in `claims.Claimed.values`.
LACKS = """COALESCE(CASE WHEN p.fields ? %({name})s THEN p.fields ->> %({name})s
                         WHEN %({name})s = 'name' THEN p.name
                         WHEN %({name})s = 'address' THEN p.address END, '') = '' AS {name}"""
COUNT = f"""
SELECT refused, kind, CASE WHEN account_id = ANY(%(accounts)s) THEN account_id END, count(*){{counts}}
FROM (
    SELECT p.kind, p.account_id, {REFUSED} AS refused{{wants}}
    FROM ({AUDIENCE}) audience JOIN accounts_recipient p ON p.id = audience.id
) known
GROUP BY 1, 2, 3
"""  # noqa: S608 - made of constants

# Sums of hashes, so that the order does not matter and a million rows need no memory.
FINGERPRINT = f"""
SELECT count(*), COALESCE(bit_xor(hashint8extended(p.id, 1)), 0), COALESCE(sum(hashint8(p.id)::bigint), 0)::text
FROM ({AUDIENCE}) audience JOIN accounts_recipient p ON p.id = audience.id
WHERE {REFUSED} = ''
"""  # noqa: S608 - made of constants

# Counts recipients by name and by tag without comparing them: one that is both counts twice. Counting stops at `most`.
SIZES = """
SELECT wanted.id, (
    SELECT count(*) FROM (
        SELECT 1 FROM reminders_reminder_recipients named WHERE named.reminder_id = wanted.id
        UNION ALL
        SELECT 1 FROM reminders_reminder_tags chosen
        JOIN accounts_recipient_tags tagged ON tagged.tag_id = chosen.tag_id WHERE chosen.reminder_id = wanted.id
        LIMIT %(most)s
    ) counted
)
FROM unnest(%(reminders)s::bigint[]) AS wanted(id)
"""

ONE_KIND = {
    "group": ("group", "groups"),
    "person": ("person", "people"),
    "mailbox": ("mailbox", "mailboxes"),
    "room": ("room", "rooms"),
    "profile": ("profile", "profiles"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Audience:
    """The numbers of a reminder's audience: recipients reached by kind, and those left out by reason."""

    kinds: Mapping[str, int]
    refused: Mapping[str, int]
    tied: Mapping[int, int] = field(default_factory=dict)  # of those reached: tied to one account, by account
    lacking: Mapping[str, int] = field(default_factory=dict)  # of those reached: without a value, by variable
    short: int = 0  # of those reached: get nothing because a value is missing
    counted_at: datetime | None = None  # set where the numbers were counted earlier

    @property
    def reached(self) -> int:
        return sum(self.kinds.values())

    @property
    def excluded(self) -> int:
        return sum(self.refused.values())

    @property
    def words_of_excluded(self) -> str:
        """Return how many are left out, with the reasons: 5 excluded: 3 opted out, 2 blocked. Empty for none."""
        if not self.excluded:
            return ""
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in self.refused.items())
        return f"{self.excluded:,} excluded: {reasons}"

    @property
    def complete(self) -> int:
        """Return how many of those reached have every value that the message needs."""
        return self.reached - self.short

    @property
    def words(self) -> str:
        """Return the size in words: 1,000 groups; 1 person; 40 recipients where there are several kinds."""
        return self.counted(self.reached)

    @property
    def words_of_complete(self) -> str:
        return self.counted(self.complete)

    @property
    def words_of_short(self) -> str:
        return self.counted(self.short)

    def counted(self, number: int) -> str:
        """Return `number` with the noun for this audience's kind."""
        one, many = ONE_KIND[next(iter(self.kinds))] if len(self.kinds) == 1 else ("recipient", "recipients")
        return f"{number:,} {one if number == 1 else many}"

    def shares(self, accounts: Sequence[int]) -> dict[int, int]:
        """Return how many targets each account would get, by the rule of `DEALT`: tied ones, and the others in turn."""
        if not accounts:
            return {}
        free, turns = self.reached - sum(self.tied.values()), len(accounts)
        dealt = {
            account: self.tied.get(account, 0) + free // turns + (place < free % turns)
            for place, account in enumerate(accounts)
        }
        return {account: number for account, number in dealt.items() if number}


def count(
    reminder_id: int,
    account_ids: Sequence[int],
    variables: Sequence[str] = (),
    *,
    needed: Collection[str] | None = None,
) -> Audience:
    """Return the audience of a reminder as if it were fired now, with how many recipients lack each variable.

    A recipient that lacks one of the variables in `needed` (by default all of them) gets nothing.
    """
    columns = [f"lacks_{number}" for number in range(len(variables))]
    named = zip(columns, variables, strict=True)
    vital = " OR ".join(column for column, name in named if needed is None or name in needed)
    short = f", count(*) FILTER (WHERE {vital or 'false'})" if columns else ""
    query = COUNT.format(
        counts=short + "".join(f", count(*) FILTER (WHERE {column})" for column in columns),
        wants="".join(", " + LACKS.format(name=column) for column in columns),
    )
    values: dict[str, Any] = {"reminder": reminder_id, "accounts": list(account_ids)}
    with connection.cursor() as cursor:
        cursor.execute(query, values | dict(zip(columns, variables, strict=True)))
        return _summed(cursor.fetchall(), variables)


def _summed(rows: Iterable[tuple[Any, ...]], variables: Sequence[str]) -> Audience:
    kinds, refused, tied = Counter[str](), Counter[str](), Counter[int]()
    lacking, short = Counter[str](), 0
    for why, kind, account, number, *missing in rows:
        if why:
            refused[why] += number
            continue
        kinds[kind] += number
        if account is not None:
            tied[account] += number
        if missing:
            short += missing[0]
            lacking.update(dict(zip(variables, missing[1:], strict=True)))
    most_first = {name: number for name, number in lacking.most_common() if number}
    return Audience(
        kinds=dict(kinds), refused=dict(refused), tied=dict(tied), lacking=most_first, short=short
    )


def sizes(reminder_ids: Sequence[int], *, most: int) -> dict[int, int]:
    """Return about how many targets each reminder would have, each counted up to `most`."""
    with connection.cursor() as cursor:
        cursor.execute(SIZES, {"reminders": list(reminder_ids), "most": most})
        return dict(cursor.fetchall())


def fingerprint(reminder_id: int, account_ids: Sequence[int]) -> list[Any]:
    """Return values that differ where other recipients would get the reminder."""
    with connection.cursor() as cursor:
        cursor.execute(FINGERPRINT, {"reminder": reminder_id, "accounts": list(account_ids)})
        return list(cursor.fetchone() or ())
