"""A shift by hand: a test takes permits and writes the ledger as an engine does, and looks at what Redis keeps."""

from datetime import UTC, datetime

from redis import Redis

from accounts.models import Account
from delivery.engine import wakeups
from delivery.engine.lease import Lease, lease_key
from delivery.engine.permits import Permits
from delivery.engine.wakeups import Rest
from delivery.limiter import Granted
from tests.factories import AttemptFactory

HOUR_MS = 3_600_000


def keys(account: Account) -> list[str]:
    return [f"paceline:{{{account.pk}}}:message:{name}" for name in ("log", "state")]


def copied(redis: Redis, account: Account) -> dict[str, bytes]:
    return {key: value for key in keys(account) if (value := redis.dump(key))}


def restored(redis: Redis, copy: dict[str, bytes]) -> None:
    for key, value in copy.items():
        redis.restore(key, HOUR_MS, value, replace=True)


def epoch(redis: Redis, account: Account) -> bytes | str | None:
    """Return the mark of the limiter's state, which changes each time the state is rebuilt."""
    return redis.hget(keys(account)[1], "epoch")


def lease_of(account: Account) -> Lease:
    lease = wakeups.take_lease(account.pk)
    assert lease is not None
    return lease


class Shift:
    """A shift by hand: each message that is sent gets its row in the ledger at once."""

    def __init__(self, account: Account) -> None:
        self.account = account
        self.lease = lease_of(account)
        self.permits = Permits(Account.objects.get(pk=account.pk), self.lease, "message")

    def send(self, most: int) -> int:
        """Send as many as are granted, up to `most`; answers with how many."""
        answer = self.permits.take(cost=1, error_rate=0, in_hand={}, in_flight=0)
        if not isinstance(answer, Granted):
            return 0
        used, unused = answer.units[:most], answer.units[most:]
        for unit in used:
            AttemptFactory.create(test_send=True, account=self.account, at=datetime.now(UTC), took_ms=0)
            self.permits.settle(unit.permits[0])
        self.permits.give_back(permit for unit in unused for permit in unit.permits)
        return len(used)

    def end(self) -> None:
        self.permits.report()
        wakeups.end_shift(self.lease, Rest.soon())

    def die(self, redis: Redis) -> None:
        redis.delete(lease_key(self.account.pk))
