"""Dealing recipients to accounts: the turns of accounts, and the SQL that applies them."""

from collections import Counter

import pytest
from django.db import connection
from hypothesis import given
from hypothesis import strategies as st

from delivery.senders.deal import Deal, Room, dealt, in_turn, turns_of

A, B, C = 11, 12, 13
ROOMS = st.lists(st.tuples(st.integers(-3, 40), st.integers(0, 60)), min_size=1, max_size=5)


def rooms_of(values: list[tuple[int, int]]) -> list[Room]:
    return [Room(account_id=A + at, today=today, a_day=a_day) for at, (today, a_day) in enumerate(values)]


def greedy(rooms: list[Room], turns: int) -> Counter[int]:
    """Deal one after the other to whoever has the most room; in equal room, whoever comes first."""
    left = {room.account_id: max(0, room.today) for room in rooms}
    dealt = Counter[int]()
    for _ in range(min(turns, sum(left.values()))):
        chosen = max(left, key=lambda pk: left[pk])
        left[chosen] -= 1
        dealt[chosen] += 1
    return dealt


@given(ROOMS, st.integers(0, 150))
def test_each_goes_where_there_is_most_room_today(values: list[tuple[int, int]], turns: int) -> None:
    rooms = rooms_of(values)
    today = sum(max(0, room.today) for room in rooms)
    shares = turns_of(rooms).shares(min(turns, today))
    expected = greedy(rooms, min(turns, today))
    assert shares.total() == min(turns, today)
    for room in rooms:  # the order among equals may differ by a turn
        assert abs(shares[room.account_id] - expected[room.account_id]) <= 1
        assert shares[room.account_id] <= max(0, room.today)


def test_accounts_with_the_same_room_take_turns() -> None:
    turns = turns_of([Room(account_id=pk, today=1_000, a_day=1_000) for pk in (A, B, C)])
    assert turns.shares(4) == {A: 2, B: 1, C: 1}
    assert turns.shares(6_000) == {A: 2_000, B: 2_000, C: 2_000}


def test_what_today_has_no_room_for_is_dealt_by_the_room_of_a_day() -> None:
    turns = turns_of([Room(account_id=A, today=0, a_day=50), Room(account_id=B, today=0, a_day=150)])
    assert turns.shares(400) == {A: 100, B: 300}
    assert turns.shares(8)[B] == 6  # well mixed, and not the one after the other


def test_an_account_without_room_today_gets_nobody_while_another_has_some() -> None:
    assert turns_of([Room(account_id=A, today=0, a_day=9), Room(account_id=B, today=5, a_day=9)]).shares(
        5
    ) == {B: 5}


ROWS = """
    SELECT n AS key, n AS recipient_id, NULL::bigint AS fixed, '' AS refused, n %% 3 = 0 AS is_group
    FROM generate_series(1, 200) n
"""


def by_sql(deal: Deal, rows: str = ROWS) -> Counter[int]:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT account_id, count(*) FROM ({dealt(rows, deal)}) d GROUP BY 1", deal.arguments)
        return Counter(dict(cursor.fetchall()))


@pytest.mark.django_db
@pytest.mark.parametrize(
    "values",
    [
        [(5, 5), (5, 5)],
        [(0, 10), (0, 30), (0, 1)],
        [(100, 1), (20, 1), (20, 1), (3, 9)],
        [(1_000, 1), (1, 1)],
    ],
)
def test_the_statement_deals_as_the_rule_says(values: list[tuple[int, int]]) -> None:
    rooms = rooms_of(values)
    others = [Room(account_id=room.account_id, today=room.today // 2, a_day=room.a_day) for room in rooms]
    ids = tuple(room.account_id for room in rooms)
    deal = Deal(accounts=ids, able=ids, people=turns_of(rooms), groups=turns_of(others))
    assert by_sql(deal) == deal.people.shares(134) + deal.groups.shares(66)


@pytest.mark.django_db
def test_refused_and_fixed_rows_use_up_no_turn() -> None:
    rows = f"""
        SELECT n AS key, n AS recipient_id, CASE WHEN n <= 5 THEN {A}::bigint END AS fixed,
               CASE WHEN n BETWEEN 6 AND 9 THEN 'blocked' ELSE '' END AS refused, false AS is_group
        FROM generate_series(1, 29) n
    """
    with connection.cursor() as cursor:
        deal = in_turn([A, B])
        cursor.execute(f"SELECT * FROM ({dealt(rows, deal)}) d", deal.arguments)
        names = [column.name for column in cursor.description or ()]
        found = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
    sent = Counter(row["account_id"] for row in found if not row["refused"])
    assert sent == {A: 15, B: 10}
    assert {row["account_id"] for row in found} == {A, B}
