"""Health as a machine reads it (/healthz, /readyz) and as a person does (doctor)."""

import json
from collections.abc import Iterator
from datetime import timedelta
from io import StringIO

import pytest
import time_machine
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client
from django.utils import timezone
from redis import ConnectionError as RedisConnectionError
from redis import Redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from accounts.models import User
from activity import heartbeats
from activity.health import readiness
from delivery.engine import beat_clock, clock_reading

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def empty_redis(redis: Redis) -> None:
    """Remove all heartbeats: no process has been seen."""


@pytest.fixture
def everybody_seen() -> None:
    heartbeats.saw_worker("one")
    heartbeats.saw_beat()


@pytest.fixture
def no_redis(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    at_once = Retry(NoBackoff(), 0)
    with Redis(unix_socket_path="/nonexistent/redis.sock", retry=at_once) as away:
        monkeypatch.setattr(readiness, "client", lambda: away)
        monkeypatch.setattr(heartbeats, "client", lambda: away)
        yield


@pytest.fixture
def no_database(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(connection.settings_dict, "HOST", "/nonexistent/secret-host")


def failing() -> set[str]:
    return {check.name for check in readiness.probe().checks if not check.ok}


def seen_ago(redis: Redis, seconds: int) -> int:
    return int(redis.time()[0]) - seconds


def test_the_process_is_healthy_whatever_else_is_not(
    client: Client, no_redis: None, no_database: None
) -> None:
    answer = client.get("/healthz")
    assert answer.status_code == 200
    assert answer.json() == {"status": "ok"}


CHECKS = {"database", "redis", "worker", "beat", "shares", "wake_ups", "media", "clocks"}


def test_it_is_ready_once_a_worker_and_beat_were_seen(
    client: Client, everybody_seen: None, staff: User
) -> None:
    answer = client.get("/readyz")
    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})
    client.force_login(staff)
    assert set(client.get("/readyz").json()["checks"]) >= CHECKS


def test_only_staff_read_the_checks(client: Client, everybody_seen: None, owner: User) -> None:
    client.force_login(owner)
    assert client.get("/readyz").json() == {"status": "ok"}


def test_it_is_not_ready_before(client: Client, staff: User) -> None:
    assert client.get("/readyz").status_code == 503
    client.force_login(staff)
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
    redis.hset(heartbeats.WORKER_KEY, "one", seen_ago(redis, seconds))
    assert failing() == expected


@pytest.mark.parametrize(("seconds", "expected"), [(0, set()), (50, set()), (70, {"beat"})])
def test_beat_counts_for_a_minute(
    seconds: int, expected: set[str], redis: Redis, everybody_seen: None
) -> None:
    redis.set(heartbeats.BEAT_KEY, seen_ago(redis, seconds))
    assert failing() == expected


def test_one_live_worker_among_silent_ones_is_enough(redis: Redis, everybody_seen: None) -> None:
    redis.hset(heartbeats.WORKER_KEY, "silent", seen_ago(redis, 500))
    assert failing() == set()


def test_a_worker_silent_for_over_an_hour_is_forgotten_when_another_is_seen(redis: Redis) -> None:
    redis.hset(heartbeats.WORKER_KEY, "gone", seen_ago(redis, 4000))
    redis.hset(heartbeats.WORKER_KEY, "silent", seen_ago(redis, 500))
    heartbeats.saw_worker("one")
    assert set(redis.hgetall(heartbeats.WORKER_KEY)) == {b"one", b"silent"}


def test_what_was_seen_does_not_stay_for_ever(redis: Redis, everybody_seen: None) -> None:
    assert redis.ttl(heartbeats.WORKER_KEY) > 0
    assert redis.ttl(heartbeats.BEAT_KEY) > 0


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
        heartbeats.saw_worker("one")


# Clocks


def test_clocks_that_agree_are_fine(client: Client, everybody_seen: None, staff: User) -> None:
    client.force_login(staff)
    clock_reading.report("one")
    check = client.get("/readyz").json()["checks"]["clocks"]
    assert check["ok"]
    assert check["detail"].startswith("differ by 0")


def test_a_worker_whose_clock_is_off_fails_and_only_the_doctor_names_it(
    client: Client, everybody_seen: None, staff: User
) -> None:
    client.force_login(staff)
    with time_machine.travel(timezone.now() + timedelta(minutes=61)):
        clock_reading.report("one@far-away")
    clock_reading.report("two@here")
    answer = client.get("/readyz")
    assert (answer.status_code, answer.json()["status"]) == (200, "degraded"), "pages stay up"
    detail = answer.json()["checks"]["clocks"]["detail"]
    assert detail == "The clocks of 1 of 2 workers are off by up to 3660 s."
    out = StringIO()
    with pytest.raises(CommandError, match=r"Not ready: clocks\."):
        call_command("doctor", stdout=out)
    assert "one@far-away: +3660.0 s" in out.getvalue()
    assert "NTP" in out.getvalue()


@pytest.mark.django_db(transaction=True)
def test_the_clock_of_beat_is_told_by_its_name(
    client: Client, everybody_seen: None, staff: User, redis: Redis
) -> None:
    client.force_login(staff)
    with time_machine.travel(timezone.now() - timedelta(seconds=61)):
        beat_clock.report_the_clock_of_beat()
    clock_reading.report("one@here")
    detail = client.get("/readyz").json()["checks"]["clocks"]["detail"]
    assert detail == "The clock of beat is off by 61 s."
    assert not redis.exists(clock_reading.APART_KEY), "nobody waits for it"


def test_the_clock_of_the_server_itself_may_be_off(client: Client, everybody_seen: None, staff: User) -> None:
    client.force_login(staff)
    with time_machine.travel(timezone.now() - timedelta(minutes=61)):
        detail = client.get("/readyz").json()["checks"]["clocks"]["detail"]
    assert detail == "The clock of this server is 61 minutes behind the database."


def test_a_worker_that_is_gone_says_nothing_of_clocks(redis: Redis, everybody_seen: None) -> None:
    with time_machine.travel(timezone.now() + timedelta(minutes=61)):
        clock_reading.report("gone")
    said = json.loads(redis.hget(clock_reading.REPORTS_KEY, "gone") or b"")
    redis.hset(
        clock_reading.REPORTS_KEY, "gone", json.dumps(said | {"at": said["at"] - clock_reading.LATELY_MS})
    )
    assert failing() == set()
    clock_reading.report("one")
    assert redis.hkeys(clock_reading.REPORTS_KEY) == [b"one"]
