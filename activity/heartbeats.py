"""Records that workers and beat are alive, and what each worker serves and sees. `activity/health/` reads it."""

import json

import structlog
from django.conf import settings
from redis import Redis
from redis.exceptions import RedisError

from activity import media_marker
from activity.media_marker import Marker
from config.redis.client import client

log = structlog.get_logger(__name__)

WORKER_KEY = "paceline:seen:worker"  # a hash: the worker's name -> when it was last seen, by Redis' clock
BEAT_KEY = "paceline:seen:beat"
REPORTS_KEY = "paceline:seen:reports"  # a hash: the worker's name -> its report
MEDIA_KEY = "paceline:seen:media"  # the marker of the media that the web servers see
FORGET_SECONDS = 3600  # a worker that has been silent this long is no longer listed


def saw_worker(name: str) -> None:
    """Record that the worker `name` is alive."""
    redis = client()
    now = now_of(redis)
    silent = [other for other, at in redis.hgetall(WORKER_KEY).items() if now - int(at) > FORGET_SECONDS]
    with redis.pipeline() as pipeline:
        if silent:
            pipeline.hdel(WORKER_KEY, *silent)
        pipeline.hset(WORKER_KEY, name, now)
        pipeline.expire(WORKER_KEY, FORGET_SECONDS)
        pipeline.execute()


def saw_beat() -> None:
    """Record that beat is alive."""
    redis = client()
    redis.set(BEAT_KEY, now_of(redis), ex=FORGET_SECONDS)


def tell(name: str, *, share: str, threads: int = 0, serving: int = 0, oldest_lease: float = 0.0) -> None:
    """Record what the worker `name` serves and sees: its threads, its accounts, and the age of its oldest lease."""
    redis = client()
    told = {
        "at": int(redis.time()[0]),
        "share": share,
        "media": media_marker.look().text,
        "threads": threads,
        "serving": serving,
        "oldest_lease": round(oldest_lease, 1),
    }
    with redis.pipeline() as pipeline:
        pipeline.hset(REPORTS_KEY, name, json.dumps(told))
        pipeline.expire(REPORTS_KEY, FORGET_SECONDS)
        pipeline.execute()


def announce_media() -> Marker:
    """Write the marker of the media, tell workers what it says, and return it. The log has what is wrong."""
    marker = media_marker.look(write=True)
    if marker.problem:
        log.error("media_not_usable", place=media_place(), problem=marker.problem)
    if marker.text:
        try:
            client().set(MEDIA_KEY, marker.text)
        except RedisError:
            log.warning("media_not_announced", exc_info=True)
    return marker


def compare_media() -> bool:
    """Decide whether this worker sees the media of the web servers, if these have said what they see."""
    marker = media_marker.look()
    try:
        announced: bytes | None = client().get(MEDIA_KEY)  # type: ignore[assignment]  # redis-py types both clients
    except RedisError:
        return True  # then nothing is known; the reports tell it later
    if announced is None or announced.decode() == marker.text:
        return True
    log.error(
        "media_differ",
        place=media_place(),
        problem=marker.problem or "The web servers see other files.",
        hint="This worker does not see the media of the web servers. Give all of them the same MEDIA_ROOT, on a disk "
        "that they share, or the same MEDIA_BUCKET.",
    )
    return False


def media_place() -> str:
    """Return where this process looks for media."""
    return f"bucket {settings.MEDIA_BUCKET}" if settings.MEDIA_BUCKET else f"folder {settings.MEDIA_ROOT}"


def now_of(redis: Redis) -> int:
    """Return the time of Redis' clock, in whole seconds: all processes compare with this one."""
    return int(redis.time()[0])
