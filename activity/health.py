"""Whether Paceline can do its work: the database, Redis, a worker, and beat."""

from dataclasses import dataclass

import psycopg
from django.db import connection
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from redis import Redis, RedisError

from config.redis import client

WORKER_KEY = "paceline:seen:worker"  # a hash: the worker's name -> when it was last seen, by Redis' clock
BEAT_KEY = "paceline:seen:beat"
LATELY_SECONDS = 60
ANSWER_SECONDS = 3
FORGET_SECONDS = 3600  # a worker that has been silent this long is no longer listed


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing that must work, and whether it does."""

    name: str
    ok: bool
    detail: str  # for anybody: names no host
    cause: str = ""  # for the person at the terminal alone
    seen: int | None = None  # seconds since its last sign of life, for what gives signs


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """All checks of one moment."""

    checks: tuple[Check, ...]

    @property
    def ok(self) -> bool:
        return all(check.ok for check in self.checks)


def probe() -> Health:
    """Ask everything now; without Redis, which keeps the signs of life, nothing is known of the rest."""
    database = _database()
    try:
        return Health(checks=(database, *_by_redis(client())))
    except RedisError as error:
        away = Check(name="redis", ok=False, detail="does not answer", cause=str(error))
        unknown = [
            Check(name=name, ok=False, detail="not known without Redis") for name in ("worker", "beat")
        ]
        return Health(checks=(database, away, *unknown))


def saw_worker(name: str) -> None:
    """Note that the worker `name` is alive."""
    redis = client()
    now = _now(redis)
    silent = [other for other, at in redis.hgetall(WORKER_KEY).items() if now - int(at) > FORGET_SECONDS]
    with redis.pipeline() as pipeline:
        if silent:
            pipeline.hdel(WORKER_KEY, *silent)
        pipeline.hset(WORKER_KEY, name, now)
        pipeline.expire(WORKER_KEY, FORGET_SECONDS)
        pipeline.execute()


def saw_beat() -> None:
    """Note that beat is alive."""
    redis = client()
    redis.set(BEAT_KEY, _now(redis), ex=FORGET_SECONDS)


@never_cache
@require_safe
def healthz(_request: HttpRequest) -> HttpResponse:
    """The process answers; nothing else is asked."""
    return JsonResponse({"status": "ok"})


@never_cache
@require_safe
def readyz(_request: HttpRequest) -> HttpResponse:
    """Everything works, or 503; without causes, for they name hosts."""
    health = probe()
    checks = {
        check.name: {"ok": check.ok, "detail": check.detail, "seen": check.seen} for check in health.checks
    }
    status = "ok" if health.ok else "failing"
    return JsonResponse({"status": status, "checks": checks}, status=200 if health.ok else 503)


def _database() -> Check:
    """Past the pool, which would wait long for a connection to a server that is away."""
    asked = connection.get_connection_params() | {"connect_timeout": ANSWER_SECONDS}
    try:
        with psycopg.connect(**asked) as fresh:
            fresh.execute("SELECT 1")
    except psycopg.Error as error:
        return Check(name="database", ok=False, detail="does not answer", cause=str(error).strip())
    return Check(name="database", ok=True, detail="answers")


def _by_redis(redis: Redis) -> tuple[Check, ...]:
    now = _now(redis)
    return (
        Check(name="redis", ok=True, detail="answers"),
        _lately("worker", _worker_seen(redis), now),
        _lately("beat", _beat_seen(redis), now),
    )


def _lately(name: str, at: int | None, now: int) -> Check:
    if at is None:
        return Check(name=name, ok=False, detail="not seen within the last hour")
    ago = max(0, now - at)
    return Check(name=name, ok=ago <= LATELY_SECONDS, detail=f"last seen {ago} s ago", seen=ago)


def _worker_seen(redis: Redis) -> int | None:
    return max((int(at) for at in redis.hgetall(WORKER_KEY).values()), default=None)


def _beat_seen(redis: Redis) -> int | None:
    at = redis.get(BEAT_KEY)
    return None if at is None else int(at)


def _now(redis: Redis) -> int:
    """Redis' own clock: those of the machines may differ."""
    return int(redis.time()[0])
