"""Records that workers and beat are alive, and what each worker serves and sees. `activity/health/` reads it."""

import json

from redis import Redis

from activity import media_marker
from config.redis.client import client

WORKER_KEY = "paceline:seen:worker"  # a hash: the worker's name -> when it was last seen, by Redis' clock
BEAT_KEY = "paceline:seen:beat"
REPORTS_KEY = "paceline:seen:reports"  # a hash: the worker's name -> its report
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


def tell(name: str, *, share: str) -> None:
    """Record what the worker `name` serves and sees."""
    redis = client()
    told = {"at": int(redis.time()[0]), "share": share, "media": media_marker.look().text}
    with redis.pipeline() as pipeline:
        pipeline.hset(REPORTS_KEY, name, json.dumps(told))
        pipeline.expire(REPORTS_KEY, FORGET_SECONDS)
        pipeline.execute()


def now_of(redis: Redis) -> int:
    """Return the time of Redis' clock, in whole seconds: all processes compare with this one."""
    return int(redis.time()[0])
