"""Deals recipients to accounts (SPEC S7). Pure: values, and the SQL that applies them to any number of rows.

1. An account that is fixed stays: that of a group which only one account reaches, or one that a person chose.
2. A recipient keeps the account that last talked with them, of those that are able to send.
3. All others are new. Each goes to the account that has the most room left today, counting those dealt before. What
   today has no room for is dealt by the room of a whole day, so that all accounts finish together.

New people are dealt by the room for new people, where an account limits these; groups by the room for messages.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

LONGEST_CYCLE = 100  # turns, about, after which the accounts of one stretch come again
FURTHEST = 2**62  # turns; nobody has more recipients


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """How many recipients an account may still get today, and on any whole day."""

    account_id: int
    today: int
    a_day: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """Turns from `first` on (0 is the first of all), in which these accounts take turns."""

    first: int
    accounts: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Turns:
    """The accounts that take the turns: one stretch after another, of which the last does not end."""

    stretches: tuple[Stretch, ...]

    def shares(self, turns: int) -> Counter[int]:
        """Return how many of the first `turns` turns each account takes."""
        taken = Counter[int]()
        ends = [*(stretch.first for stretch in self.stretches[1:]), FURTHEST]
        for stretch, end in zip(self.stretches, ends, strict=True):
            whole, rest = divmod(max(0, min(turns, end) - stretch.first), len(stretch.accounts))
            for account_id in stretch.accounts:
                taken[account_id] += whole
            taken.update(stretch.accounts[:rest])
        return +taken

    def arguments(self, name: str) -> dict[str, list[int]]:
        """Return the stretches as arrays: first turns, the places of their accounts in one list, and that list."""
        sizes = [len(stretch.accounts) for stretch in self.stretches]
        return {
            f"{name}_firsts": [stretch.first for stretch in self.stretches],
            f"{name}_places": [1 + sum(sizes[:number]) for number in range(len(sizes))],
            f"{name}_sizes": sizes,
            f"{name}_accounts": [pk for stretch in self.stretches for pk in stretch.accounts],
        }


def turns_of(rooms: Sequence[Room]) -> Turns:
    """Return the turns in which each recipient goes to the account with the most room left today.

    Where several have the same room, they take turns in the order of `rooms`.
    """
    order = [room.account_id for room in rooms]
    roomiest = sorted(rooms, key=lambda room: -max(0, room.today))
    levels = [*(max(0, room.today) for room in roomiest), 0]
    stretches, first = list[Stretch](), 0
    for number in range(1, len(roomiest) + 1):
        length = number * (levels[number - 1] - levels[number])
        if length:
            among = {room.account_id for room in roomiest[:number]}
            stretches.append(Stretch(first=first, accounts=tuple(pk for pk in order if pk in among)))
            first += length
    stretches.append(Stretch(first=first, accounts=_by_day(rooms)))
    return Turns(stretches=tuple(stretches))


def _by_day(rooms: Sequence[Room]) -> tuple[int, ...]:
    """Return a cycle in which each account comes as often as its room of a whole day has it, well mixed."""
    most = sum(max(1, room.a_day) for room in rooms)
    if len({max(1, room.a_day) for room in rooms}) == 1:
        return tuple(room.account_id for room in rooms)
    weights = {room.account_id: max(1, round(LONGEST_CYCLE * max(1, room.a_day) / most)) for room in rooms}
    total, owed, found = sum(weights.values()), dict.fromkeys(weights, 0), list[int]()
    for _ in range(total):
        for account_id, weight in weights.items():
            owed[account_id] += weight
        chosen = max(owed, key=lambda pk: owed[pk])
        owed[chosen] -= total
        found.append(chosen)
    return tuple(found)


@dataclass(frozen=True, kw_only=True)
class Deal:
    """How recipients are dealt to `accounts`, now: by which of them are able to send, and in which turns."""

    accounts: tuple[int, ...]
    able: tuple[int, ...]
    people: Turns
    groups: Turns

    def next(self, *, group: bool) -> int:
        """Return the account that the next new recipient would go to."""
        return (self.groups if group else self.people).stretches[0].accounts[0]

    @cached_property
    def arguments(self) -> dict[str, Any]:
        """Return the arguments of the SQL of `dealt`."""
        return {
            "accounts": list(self.accounts),
            "able": list(self.able),
            **self.people.arguments("people"),
            **self.groups.arguments("groups"),
        }


def in_turn(account_ids: Sequence[int]) -> Deal:
    """Return the deal of accounts that all have the same room: one after the other."""
    accounts = tuple(dict.fromkeys(account_ids))
    turns = turns_of([Room(account_id=pk, today=0, a_day=1) for pk in accounts])
    return Deal(accounts=accounts, able=accounts, people=turns, groups=turns)


def _taken(name: str) -> str:
    """Return the SQL for the account that takes turn number `<name>_turn`, counted from 1."""
    stretch = f"width_bucket({name}_turn - 1, %({name}_firsts)s::bigint[])"
    return f"""(%({name}_accounts)s::bigint[])[
        (%({name}_places)s::bigint[])[{stretch}]
        + ({name}_turn - 1 - (%({name}_firsts)s::bigint[])[{stretch}]) %% (%({name}_sizes)s::bigint[])[{stretch}]
    ]"""


# The newest of several contacts is the first of its key; who has none has one row too.
KEPT = """
    SELECT DISTINCT ON (wanted.key) wanted.*, contact.account_id AS kept
    FROM ({rows}) wanted
    LEFT JOIN accounts_contact contact
        ON contact.recipient_id = wanted.recipient_id AND contact.account_id = ANY(%(able)s::bigint[])
        AND contact.talked_at IS NOT NULL AND wanted.fixed IS NULL AND wanted.refused = ''
    ORDER BY wanted.key, contact.talked_at DESC NULLS LAST, contact.account_id
"""
DEALT = f"""
    SELECT counted.*, COALESCE(fixed, kept, CASE WHEN is_group THEN {_taken("groups")}
                               ELSE {_taken("people")} END) AS account_id
    FROM (
        SELECT known.*,
               GREATEST(1, count(*) FILTER (WHERE is_new AND is_group) OVER sofar) AS groups_turn,
               GREATEST(1, count(*) FILTER (WHERE is_new AND NOT is_group) OVER sofar) AS people_turn
        FROM (SELECT chosen.*, fixed IS NULL AND kept IS NULL AND refused = '' AS is_new FROM ({KEPT}) chosen) known
        WINDOW sofar AS (ORDER BY key ROWS UNBOUNDED PRECEDING)
    ) counted
"""  # noqa: S608 - made of constants
KEPT_BY_NOBODY = "SELECT wanted.*, NULL::bigint AS kept FROM ({rows}) wanted"
ALL_TO_ONE = "SELECT wanted.*, COALESCE(fixed, (%(able)s::bigint[])[1]) AS account_id FROM ({rows}) wanted"


def dealt(rows: str, deal: Deal) -> str:
    """Return SQL that deals `rows`, each with an `account_id`; `Deal.arguments` are its arguments.

    The rows have the columns `key` (unique; turns are counted in its order), `recipient_id`, `fixed` (the account that
    is fixed, or NULL), `refused` ('' for those who get a message; the others use up no turn) and `is_group`. All their
    columns come out again.
    """
    return (DEALT if len(deal.able) > 1 else ALL_TO_ONE).replace("{rows}", rows)


def kept(rows: str, *, several: bool) -> str:
    """Return SQL that adds to `rows` the account that talked with each last; without `several`, to nobody."""
    return (KEPT if several else KEPT_BY_NOBODY).replace("{rows}", rows)
