"""A host that is cut off from PostgreSQL and not from Redis: another host takes its accounts over (O1, R7, R8)."""

from urllib.parse import urlsplit

import pytest

from tests.chaos.evidence import part_keys
from tests.chaos.island import Island, possible
from tests.chaos.lab import Lab

TAKEN_OVER = 60.0  # seconds; a claim that it happens by itself, not how fast


@pytest.mark.skipif(not possible(), reason="network namespaces are root's")
def test_a_host_that_is_cut_off_from_the_database_loses_its_accounts_to_another(lab: Lab) -> None:
    lab.kill_workers()
    gateway = urlsplit(lab.gateway.url)
    servers = lab.servers
    with Island(
        postgres=str(servers.postgres.data / ".s.PGSQL.5432"),
        redis=str(servers.redis.data / "redis.sock"),
        gateway=("127.0.0.1", gateway.port or 80),
    ) as island:
        senders = [
            lab.add_account(
                idempotent=False, limits={"per_minute": 120}, latency_ms=100, url=island.gateway_url
            )
            for _ in range(6)
        ]
        lab.start_worker(island=island)
        runs = [lab.operator.fire(sender.id, targets=80) for sender in senders]
        for sender in senders:
            lab.delivered(sender, 2)  # all of them are the island's
        lab.start_worker()

        island.cut_postgres()
        fences = {sender.id: lab.operator.account(sender.id).fence for sender in senders}
        lab.until(
            lambda: all(lab.operator.account(each).fence > fence for each, fence in fences.items()),
            "the other host has all accounts",
            TAKEN_OVER,
        )
        lab.asked(senders, 60)
        island.mend()

        for sender, run in zip(senders, runs, strict=True):
            found = lab.settled(run, seconds=150)
            assert found.sent + found.unconfirmed == found.total
            arrived = sender.seen.arrivals()
            assert max(arrived.values()) == 1
            sent = [each for each in lab.operator.targets(run) if each.status == "sent"]
            assert set(part_keys(sent)) <= set(arrived)
            assert sender.seen.worst(60_000) <= 120
        lab.kill_workers()
