"""The sessions that the engine's statements run in."""

import asyncio
from datetime import UTC, datetime

import pytest

from delivery.engine import sql


def test_no_plan_is_compiled(db: None) -> None:
    assert sql.execute("SHOW jit", {}) == [("off",)]


@pytest.mark.django_db(transaction=True)
def test_no_plan_of_the_loop_is_compiled() -> None:
    async def asked() -> sql.Rows:
        line = sql.Line()
        try:
            return await line.run(sql.Query(sql="SHOW jit", arguments={}, read=lambda rows: rows))
        finally:
            await line.close()

    assert asyncio.run(asked()) == [("off",)]


TEXTS = ["", "sent", "NULL", None, 'say "hi"', "a\\b", "{1,2}", " two ", "a,b", "Grüße \n 👍", "\\"]


def test_texts_arrive_as_they_are(db: None) -> None:
    found = sql.execute("SELECT %(texts)s::text[]", {"texts": sql.text_array(TEXTS)})
    assert found == [(TEXTS,)]


def test_numbers_times_and_truths_arrive_as_they_are(db: None) -> None:
    now = datetime(2026, 1, 2, 3, 4, 5, 678901, UTC)
    found = sql.execute(
        "SELECT %(n)s::bigint[], %(at)s::timestamptz[], %(true)s::boolean[], %(none)s::smallint[]",
        {
            "n": sql.array([1, None, -(2**40)]),
            "at": sql.array([now, None]),
            "true": sql.array([True, False]),
            "none": sql.array([]),
        },
    )
    assert found == [([1, None, -(2**40)], [now, None], [True, False], [])]
