"""Health as a machine reads it (/healthz, /readyz) and as a person does (doctor)."""

import json
from collections.abc import Iterator
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client
from redis import ConnectionError as RedisConnectionError
from redis import Redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from activity import health

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def empty_redis(redis: Redis) -> None:
    """Nobody has been seen."""


@pytest.fixture
def everybody_seen() -> None:
    health.saw_worker("one")
    health.saw_beat()


@pytest.fixture
def no_redis(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    at_once = Retry(NoBackoff(), 0)
    with Redis(unix_socket_path="/nonexistent/redis.sock", retry=at_once) as away:
        monkeypatch.setattr(health, "client", lambda: away)
        yield


@pytest.fixture
def no_database(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(connection.settings_dict, "HOST", "/nonexistent/secret-host")


def failing() -> set[str]:
    return {check.name for check in health.probe().checks if not check.ok}


def seen_ago(redis: Redis, seconds: int) -> int:
    return int(redis.time()[0]) - seconds


def test_the_process_is_healthy_whatever_else_is_not(
    client: Client, no_redis: None, no_database: None
) -> None:
    answer = client.get("/healthz")
    assert answer.status_code == 200
    assert answer.json() == {"status": "ok"}


def test_it_is_ready_once_a_worker_and_beat_were_seen(client: Client, everybody_seen: None) -> None:
    answer = client.get("/readyz")
    assert answer.status_code == 200
    assert answer.json()["status"] == "ok"
    assert set(answer.json()["checks"]) == {"database", "redis", "worker", "beat"}


def test_it_is_not_ready_before(client: Client) -> None:
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert answer.json()["checks"]["worker"] == {
        "ok": False,
        "detail": "not seen within the last hour",
        "seen": None,
    }


def test_answers_are_not_cached_and_only_read(client: Client) -> None:
    for path in ("/healthz", "/readyz"):
        assert "no-store" in client.get(path)["Cache-Control"]
        assert client.post(path).status_code == 405


@pytest.mark.parametrize(("seconds", "expected"), [(0, set()), (50, set()), (70, {"worker"})])
def test_a_worker_counts_for_a_minute(
    seconds: int, expected: set[str], redis: Redis, everybody_seen: None
) -> None:
    redis.hset(health.WORKER_KEY, "one", seen_ago(redis, seconds))
    assert failing() == expected


@pytest.mark.parametrize(("seconds", "expected"), [(0, set()), (50, set()), (70, {"beat"})])
def test_beat_counts_for_a_minute(
    seconds: int, expected: set[str], redis: Redis, everybody_seen: None
) -> None:
    redis.set(health.BEAT_KEY, seen_ago(redis, seconds))
    assert failing() == expected


def test_one_live_worker_among_silent_ones_is_enough(redis: Redis, everybody_seen: None) -> None:
    redis.hset(health.WORKER_KEY, "silent", seen_ago(redis, 500))
    assert failing() == set()


def test_a_worker_silent_for_over_an_hour_is_forgotten_when_another_is_seen(redis: Redis) -> None:
    redis.hset(health.WORKER_KEY, "gone", seen_ago(redis, 4000))
    redis.hset(health.WORKER_KEY, "silent", seen_ago(redis, 500))
    health.saw_worker("one")
    assert set(redis.hgetall(health.WORKER_KEY)) == {b"one", b"silent"}


def test_what_was_seen_does_not_stay_for_ever(redis: Redis, everybody_seen: None) -> None:
    assert redis.ttl(health.WORKER_KEY) > 0
    assert redis.ttl(health.BEAT_KEY) > 0


def test_without_redis_nothing_is_known_of_workers_and_beat(no_redis: None) -> None:
    assert failing() == {"redis", "worker", "beat"}


def test_without_the_database_only_that_fails(no_database: None, everybody_seen: None) -> None:
    assert failing() == {"database"}


def test_readiness_names_no_hosts(client: Client, no_database: None, no_redis: None) -> None:
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert "nonexistent" not in json.dumps(answer.json())


def test_the_doctor_is_content_when_everything_works(everybody_seen: None) -> None:
    out = StringIO()
    call_command("doctor", stdout=out)
    assert "Everything works." in out.getvalue()


def test_the_doctor_names_cause_and_remedy_and_fails(no_database: None, everybody_seen: None) -> None:
    out = StringIO()
    with pytest.raises(CommandError, match=r"Not ready: database\.") as failure:
        call_command("doctor", stdout=out)
    assert failure.value.returncode == 1
    assert "secret-host" in out.getvalue()
    assert "DATABASE_URL" in out.getvalue()


def test_a_sign_of_life_that_cannot_be_noted_is_an_error_of_redis(no_redis: None) -> None:
    with pytest.raises(RedisConnectionError):
        health.saw_worker("one")
