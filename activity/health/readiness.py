"""Decides whether Paceline can work: database, Redis, a worker, beat, clocks that agree, and no unserved work."""

from dataclasses import dataclass, field
from typing import Any

import psycopg
from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from redis import Redis, RedisError

from activity import media_marker
from activity.health import work_checks, workers
from activity.health.check import Check
from activity.health.work_checks import Work
from activity.heartbeats import BEAT_KEY, WORKER_KEY, now_of
from config import pooler
from config.redis.client import CLUSTER, client, is_cluster
from delivery.engine import clock_reading

LATELY_SECONDS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """The results of all checks at one time."""

    checks: tuple[Check, ...]
    work: Work = field(default_factory=Work)

    @property
    def ok(self) -> bool:
        return all(check.ok for check in self.checks)

    @property
    def database(self) -> bool:
        """Return whether the database answers."""
        return any(check.ok for check in self.checks if check.name == "database")

    @property
    def ready(self) -> bool:
        """Return whether pages can be served and fired runs are sent. Other checks may still need attention."""
        return all(check.ok for check in self.checks if check.needed)


def probe() -> Health:
    """Run all checks now. Without Redis, which stores the heartbeats, the other checks have no result."""
    database, work = _database()
    try:
        redis = client()
        clocks = (_clocks(),) if database.ok else ()  # without the database there is no clock to compare with
        checks = (database, *_by_redis(redis), *clocks, *_of_work(redis, work))
        return Health(checks=checks, work=work or Work())
    except RedisError as error:
        away = Check(name="redis", ok=False, detail="does not answer", cause=str(error))
        unknown = [
            Check(name=name, ok=False, detail="not known without Redis") for name in ("worker", "beat")
        ]
        return Health(checks=(database, away, *unknown), work=work or Work())


@never_cache
@require_safe
def healthz(_request: HttpRequest) -> HttpResponse:
    """Answer that the process runs; nothing else is checked."""
    return JsonResponse({"status": "ok"})


@never_cache
@require_safe
def readyz(request: HttpRequest) -> HttpResponse:
    """Answer 200 or 503 to anybody. Staff get each check, without causes, which name hosts."""
    health = probe()
    status = "ok" if health.ok else "degraded" if health.ready else "failing"
    answer: dict[str, Any] = {"status": status}
    if _for_staff(request, health):
        answer["checks"] = {
            check.name: {"ok": check.ok, "detail": check.detail, "seen": check.seen}
            for check in health.checks
        }
    response = JsonResponse(answer, status=200 if health.ready else 503)
    # Whoever asks reads the answer: Django would log each 503 as an error, also while everything starts.
    response._has_been_logged = True  # type: ignore[attr-defined]
    return response


def _for_staff(request: HttpRequest, health: Health) -> bool:
    """Return whether staff ask. The user is in the database, so a database that is away is not waited for."""
    return health.database and request.user.is_authenticated and request.user.is_staff


def _database() -> tuple[Check, Work | None]:
    try:
        with pooler.connect() as link:
            if not settings.PGBOUNCER and pooler.pooled(link):
                return _pooler_unsaid(), work_checks.ask(link)
            return Check(name="database", ok=True, detail="answers"), work_checks.ask(link)
    except psycopg.Error as error:
        if pooler.REFUSED in str(error):
            return _pooler_unsaid(), None
        return Check(name="database", ok=False, detail="does not answer", cause=str(error).strip()), None


def _pooler_unsaid() -> Check:
    return Check(name="database", ok=False, detail="is behind a pooler", cause=pooler.SENTENCE)


def _of_work(redis: Redis, work: Work | None) -> tuple[Check, ...]:
    if work is None:
        return ()
    return work_checks.judge(work, workers.told(redis), marker=media_marker.look(write=True))


def _by_redis(redis: Redis) -> tuple[Check, ...]:
    now = now_of(redis)
    return (
        _redis_itself(),
        _lately("worker", _worker_seen(redis), now),
        _lately("beat", _beat_seen(redis), now),
    )


def _clocks() -> Check:
    found = clock_reading.differences()
    if found.sentences:
        return Check(
            name="clocks", ok=False, needed=False, detail=" ".join(found.sentences), cause=found.named()
        )
    return Check(
        name="clocks", ok=True, needed=False, detail=f"differ by {found.most_ms / 1000:.1f} s at most"
    )


def _redis_itself() -> Check:
    if is_cluster():
        return Check(name="redis", ok=False, detail="is a cluster", cause=CLUSTER)
    return Check(name="redis", ok=True, detail="answers")


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
