"""Counts the recipients of a reminder, and those who are left out with the reason, before a run is made.

`fanout.py` makes the targets from the same rows by the same rule, so the numbers on a page match the run.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db import connection

from delivery.senders.deal import Deal, kept

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

# The audience, as `senders/deal.py` deals it: recipients that are tied to one of the accounts stay with it.
WANTED = f"""
    SELECT p.id AS key, p.id AS recipient_id, p.kind, p.kind IN ('group', 'room') AS is_group,
           CASE WHEN p.account_id = ANY(%(accounts)s) THEN p.account_id END AS fixed, {{refused}} AS refused{{more}}
    FROM ({AUDIENCE}) audience JOIN accounts_recipient p ON p.id = audience.id
"""  # noqa: S608 - made of constants

# Leaves out those who received one of the runs in `without`, or may have.
RECEIVED = "received it already"
REFUSED_OR_RECEIVED = f"""
    COALESCE(NULLIF({REFUSED}, ''), CASE WHEN EXISTS (
        SELECT 1 FROM delivery_runtarget earlier
        WHERE earlier.recipient_id = p.id AND earlier.run_id = ANY(%(without)s::bigint[])
          AND earlier.status IN ('sent', 'unconfirmed')
    ) THEN '{RECEIVED}' ELSE '' END)
"""  # noqa: S608 - made of constants

# Whether anybody of the audience would still get it.
SOMEBODY = f"""
SELECT EXISTS (
    SELECT 1 FROM ({AUDIENCE}) audience JOIN accounts_recipient p ON p.id = audience.id
    WHERE {REFUSED_OR_RECEIVED} = ''
)
"""  # noqa: S608 - made of constants

# The given recipients, each with the account given for it.
GIVEN = f"""
    SELECT p.id AS recipient_id, {REFUSED} AS refused, given.account_id
    FROM unnest(%(recipients)s::bigint[], %(from)s::bigint[]) given(recipient_id, account_id)
    JOIN accounts_recipient p ON p.id = given.recipient_id
"""  # noqa: S608 - made of constants

# All numbers that a page shows about the audience, in one pass over it. `wants` is one column per variable: whether
# its value is missing. A field goes before the column of the same name, as in `claims.Claimed.values`.
LACKS = """COALESCE(CASE WHEN p.fields ? %({name})s THEN p.fields ->> %({name})s
                         WHEN %({name})s = 'name' THEN p.name
                         WHEN %({name})s = 'address' THEN p.address END, '') = '' AS {name}"""
COUNT = """
SELECT refused, kind, fixed, kept, count(*){counts} FROM ({rows}) known GROUP BY 1, 2, 3, 4
"""

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

GROUPS = frozenset({"group", "room"})
ONE_KIND = {
    "group": ("group", "groups"),
    "person": ("person", "people"),
    "mailbox": ("mailbox", "mailboxes"),
    "room": ("room", "rooms"),
    "profile": ("profile", "profiles"),
}
SEVERAL_KINDS = ("recipient", "recipients")


def in_words(number: int, kinds: Collection[str]) -> str:
    """Return the number with the noun of its kind: 1,000 groups; 1 person; 40 recipients for several kinds."""
    one, many = ONE_KIND[next(iter(kinds))] if len(kinds) == 1 else SEVERAL_KINDS
    return f"{number:,} {one if number == 1 else many}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Audience:
    """The numbers of a reminder's audience: recipients reached by kind, and those left out by reason."""

    kinds: Mapping[str, int]
    refused: Mapping[str, int]
    tied: Mapping[int, int] = field(default_factory=dict)  # of those reached: tied to one account, by account
    kept: Mapping[int, int] = field(
        default_factory=dict
    )  # of those reached: stay with who talked to them last
    names: Mapping[int, str] = field(default_factory=dict)  # of the accounts in `kept`
    new_groups: int = 0  # of those reached: neither tied nor kept, and groups
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
    def words_of_kept(self) -> str:
        """Return who stays with which account: 312 stay with Office phone, 8 with Shop; 60 are new. Empty for none."""
        if not self.kept:
            return ""
        most_first = sorted(self.kept.items(), key=lambda each: -each[1])
        first, *others = [
            f"{count:,} {{}}with {self.names.get(pk, 'an account')}" for pk, count in most_first
        ]
        verb = "stays " if most_first[0][1] == 1 else "stay "
        told = ", ".join([first.replace("{}", verb), *(other.replace("{}", "") for other in others)])
        if not self.new:
            return told
        return f"{told}; {self.new:,} {'is' if self.new == 1 else 'are'} new"

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
        return in_words(number, self.kinds)

    @property
    def new(self) -> int:
        """Return how many are neither tied to an account nor stay with one."""
        return self.reached - sum(self.tied.values()) - sum(self.kept.values())

    def shares(self, deal: Deal) -> dict[int, int]:
        """Return how many targets each account would get, in the order of the deal."""
        if not deal.accounts:
            return {}
        if len(deal.able) == 1:
            dealt = Counter({deal.able[0]: self.new})
        else:
            dealt = deal.people.shares(self.new - self.new_groups) + deal.groups.shares(self.new_groups)
        dealt += Counter(self.tied) + Counter(self.kept)
        return {account: dealt[account] for account in deal.accounts if dealt[account]}


def count(
    reminder_id: int,
    account_ids: Sequence[int],
    variables: Sequence[str] = (),
    *,
    needed: Collection[str] | None = None,
    able: Collection[int] | None = None,
) -> Audience:
    """Return the audience of a reminder as if it were fired now, with how many recipients lack each variable.

    `able` are the accounts that are able to send, by default all: only these keep their recipients. A recipient that
    lacks one of the variables in `needed` (by default all of them) gets nothing.
    """
    columns = [f"lacks_{number}" for number in range(len(variables))]
    named = zip(columns, variables, strict=True)
    vital = " OR ".join(column for column, name in named if needed is None or name in needed)
    short = f", count(*) FILTER (WHERE {vital or 'false'})" if columns else ""
    lacks = "".join(", " + LACKS.format(name=column) for column in columns)
    able = list(account_ids if able is None else able)
    query = COUNT.format(
        counts=short + "".join(f", count(*) FILTER (WHERE {column})" for column in columns),
        rows=kept(WANTED.format(refused=REFUSED, more=lacks), several=len(able) > 1),
    )
    values: dict[str, Any] = {"reminder": reminder_id, "accounts": list(account_ids), "able": able}
    with connection.cursor() as cursor:
        cursor.execute(query, values | dict(zip(columns, variables, strict=True)))
        return _summed(cursor.fetchall(), variables)


def _summed(rows: Iterable[tuple[Any, ...]], variables: Sequence[str]) -> Audience:
    kinds, refused, lacking = Counter[str](), Counter[str](), Counter[str]()
    tied, kept_by = Counter[int](), Counter[int]()
    short = new_groups = 0
    for why, kind, fixed, keeper, number, *missing in rows:
        if why:
            refused[why] += number
            continue
        kinds[kind] += number
        if fixed is not None:
            tied[fixed] += number
        elif keeper is not None:
            kept_by[keeper] += number
        elif kind in GROUPS:
            new_groups += number
        if missing:
            short += missing[0]
            lacking.update(dict(zip(variables, missing[1:], strict=True)))
    most_first = {name: number for name, number in lacking.most_common() if number}
    return Audience(
        kinds=dict(kinds),
        refused=dict(refused),
        tied=dict(tied),
        kept=dict(kept_by),
        new_groups=new_groups,
        lacking=most_first,
        short=short,
    )


def sizes(reminder_ids: Sequence[int], *, most: int) -> dict[int, int]:
    """Return about how many targets each reminder would have, each counted up to `most`."""
    with connection.cursor() as cursor:
        cursor.execute(SIZES, {"reminders": list(reminder_ids), "most": most})
        return dict(cursor.fetchall())


def somebody_left(reminder_id: int, account_ids: Sequence[int], *, without: Sequence[int]) -> bool:
    """Decide whether somebody would get a reminder who did not receive one of the runs in `without`."""
    values: dict[str, Any] = {
        "reminder": reminder_id,
        "accounts": list(account_ids),
        "without": list(without),
    }
    with connection.cursor() as cursor:
        cursor.execute(SOMEBODY, values)
        return bool((cursor.fetchone() or (False,))[0])


def fingerprint(reminder_id: int, account_ids: Sequence[int]) -> list[Any]:
    """Return values that differ where other recipients would get the reminder."""
    with connection.cursor() as cursor:
        cursor.execute(FINGERPRINT, {"reminder": reminder_id, "accounts": list(account_ids)})
        return list(cursor.fetchone() or ())
