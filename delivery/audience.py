"""Who gets a reminder, and who must not and why: counted beforehand as the run will make it.

`fanout.py` makes targets of the same rows by the same rule, so that what a page promises is what a run does.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connection

# Those named and those tagged, each once.
AUDIENCE = """
    SELECT recipient_id AS id FROM reminders_reminder_recipients WHERE reminder_id = %(reminder)s
    UNION
    SELECT tagged.recipient_id FROM accounts_recipient_tags tagged
    JOIN reminders_reminder_tags wanted ON wanted.tag_id = tagged.tag_id
    WHERE wanted.reminder_id = %(reminder)s
"""

# Why the recipient `p` gets nothing, or ''. The accounts of a reminder are all on one channel.
REFUSED = """
    CASE WHEN p.opted_out_at IS NOT NULL THEN 'opted out'
         WHEN p.blocked_at IS NOT NULL THEN 'blocked'
         WHEN p.archived_at IS NOT NULL THEN 'no longer reachable'
         WHEN p.channel <> (SELECT channel FROM accounts_account WHERE id = (%(accounts)s::bigint[])[1])
              THEN 'on another channel'
         WHEN p.account_id <> ALL(%(accounts)s) THEN 'reached only by another account'
         ELSE '' END
"""

# The audience with the account that each would get it from: its own where it is tied to one, else in turn. Those who
# are tied, or get nothing, take nobody's turn.
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

# Those given, each with the account given for it.
GIVEN = f"""
    SELECT p.id, {REFUSED} AS refused, given.account_id
    FROM unnest(%(recipients)s::bigint[], %(from)s::bigint[]) given(recipient_id, account_id)
    JOIN accounts_recipient p ON p.id = given.recipient_id
"""  # noqa: S608 - made of constants

SHARES = f"SELECT account_id, count(*) FROM ({DEALT}) dealt WHERE refused = '' GROUP BY 1"  # noqa: S608

COUNT = f"""
WITH audience AS ({AUDIENCE})
SELECT {REFUSED} AS refused, p.kind, count(*)
FROM audience JOIN accounts_recipient p ON p.id = audience.id GROUP BY 1, 2
"""  # noqa: S608 - made of constants

# Named and tagged, without looking who they are: whoever is both counts twice, and counting stops where it is enough.
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

# A field goes before the column of the same name, as in `claims.Claimed.values`.
LACKING = f"""
WITH audience AS ({AUDIENCE})
SELECT wanted.name, count(*)
FROM audience JOIN accounts_recipient p ON p.id = audience.id
CROSS JOIN unnest(%(names)s::text[]) wanted(name)
WHERE {REFUSED} = ''
  AND COALESCE(CASE WHEN p.fields ? wanted.name THEN p.fields ->> wanted.name
                    WHEN wanted.name = 'name' THEN p.name
                    WHEN wanted.name = 'address' THEN p.address END, '') = ''
GROUP BY 1 ORDER BY 2 DESC, 1
"""  # noqa: S608 - made of constants

ONE_KIND = {
    "group": ("group", "groups"),
    "person": ("person", "people"),
    "mailbox": ("mailbox", "mailboxes"),
    "room": ("room", "rooms"),
    "profile": ("profile", "profiles"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Audience:
    """How many a reminder reaches, of which kinds, and how many not, by reason."""

    kinds: Mapping[str, int]
    refused: Mapping[str, int]

    @property
    def reached(self) -> int:
        return sum(self.kinds.values())

    @property
    def excluded(self) -> int:
        return sum(self.refused.values())

    @property
    def words(self) -> str:
        """1,000 groups; 1 person; 40 recipients where they are of several kinds."""
        one, many = ONE_KIND[next(iter(self.kinds))] if len(self.kinds) == 1 else ("recipient", "recipients")
        return f"{self.reached:,} {one if self.reached == 1 else many}"


def count(reminder_id: int, account_ids: Sequence[int]) -> Audience:
    """The audience of a reminder that would be fired now."""
    kinds: dict[str, int] = {}
    refused: dict[str, int] = {}
    for why, kind, number in _rows(COUNT, reminder_id, account_ids):
        part, name = (refused, why) if why else (kinds, kind)
        part[name] = part.get(name, 0) + number
    return Audience(kinds=kinds, refused=refused)


def shares(reminder_id: int, account_ids: Sequence[int]) -> dict[int, int]:
    """How many targets each account would get if the reminder were fired now."""
    return dict(_rows(SHARES, reminder_id, account_ids)) if account_ids else {}


def sizes(reminder_ids: Sequence[int], *, most: int) -> dict[int, int]:
    """About how many targets reminders would have, each up to `most`."""
    with connection.cursor() as cursor:
        cursor.execute(SIZES, {"reminders": list(reminder_ids), "most": most})
        return dict(cursor.fetchall())


def lacking(reminder_id: int, account_ids: Sequence[int], variables: Sequence[str]) -> dict[str, int]:
    """How many of those who would get it have no value for each variable; those that all have are left out."""
    if not variables:
        return {}
    return dict(_rows(LACKING, reminder_id, account_ids, names=list(variables)))


def _rows(query: str, reminder_id: int, account_ids: Sequence[int], **more: Any) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(query, {"reminder": reminder_id, "accounts": list(account_ids), **more})
        rows: list[tuple[Any, ...]] = cursor.fetchall()
    return rows
