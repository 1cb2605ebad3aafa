"""The floor: one loop without a queue claims 100 rows, sends 32 at a time with aiohttp and records 100 at a time."""

import asyncio
import os
import sys

import aiohttp
import psycopg

CLAIM = """
UPDATE peer_target SET status = 'claimed' WHERE id IN (
    SELECT id FROM peer_target WHERE status = 'pending' ORDER BY id LIMIT 100 FOR UPDATE SKIP LOCKED)
RETURNING id, account, address, body
"""
DONE = "UPDATE peer_target SET status = 'sent', sent_at = clock_timestamp() WHERE id = ANY(%s)"
AT_ONCE, BATCH = 32, 100
Row = tuple[int, str, str, str]


async def main() -> None:
    claimed: asyncio.Queue[Row | None] = asyncio.Queue(2 * BATCH)
    sent: asyncio.Queue[int | None] = asyncio.Queue()
    connector = aiohttp.TCPConnector(limit=AT_ONCE)
    async with aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar()) as session:
        recording = asyncio.create_task(_record(sent))
        await asyncio.gather(_claim(claimed), *(_send(session, claimed, sent) for _ in range(AT_ONCE)))
        await sent.put(None)
        await recording


async def _claim(claimed: "asyncio.Queue[Row | None]") -> None:
    async with await _connected() as line:
        while rows := await (await line.execute(CLAIM)).fetchall():
            for row in rows:
                await claimed.put(row)
    for _ in range(AT_ONCE):
        await claimed.put(None)


async def _send(
    session: aiohttp.ClientSession, claimed: "asyncio.Queue[Row | None]", sent: "asyncio.Queue[int | None]"
) -> None:
    while (row := await claimed.get()) is not None:
        target, account, address, body = row
        async with session.post(
            f"{os.environ['SINK']}/api/{account}/messages",
            json={"to": address, "text": body},
            headers={"Idempotency-Key": f"floor-{target}"},
        ) as answer:
            await answer.read()
            answer.raise_for_status()
        await sent.put(target)


async def _record(sent: "asyncio.Queue[int | None]") -> None:
    async with await _connected() as line:
        more = True
        while more:
            found = [await sent.get()]
            while len(found) < BATCH and not sent.empty():
                found.append(sent.get_nowait())
            more = None not in found
            await line.execute(DONE, ([target for target in found if target is not None],))


async def _connected() -> "psycopg.AsyncConnection[Row]":
    return await psycopg.AsyncConnection.connect(os.environ["PEER_DSN"], autocommit=True)


if __name__ == "__main__":
    print("READY", flush=True)
    sys.stdin.readline()
    asyncio.run(main())
