"""The sessions that the engine's statements run in."""

import asyncio

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
