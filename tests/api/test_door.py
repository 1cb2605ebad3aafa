"""Every request meets this before its route: the key, the limit, unknown parameters, and errors as problems."""

import base64
import json
from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import Settings
from redis.exceptions import ConnectionError as RedisAwayError

from accounts.models import User
from api import keys, rates
from api.scopes import Scope
from tests.api.program import Program, problem_of
from tests.factories import AccountFactory


def test_without_a_key_nothing_is_answered(client: Client, owner: User) -> None:
    client.force_login(owner)  # a session opens nothing here
    answer = client.get("/api/v1/me")
    assert problem_of(answer)["type"] == "no-key"
    assert answer["WWW-Authenticate"] == 'Bearer realm="Paceline"'


@pytest.mark.parametrize("given", ["Bearer ", "Bearer paceline_0_x", "Basic eDp5", "Bearer \xff", "paceline"])
def test_a_key_that_is_none_is_refused(client: Client, db: None, given: str) -> None:
    answer = client.get("/api/v1/me", headers={"Authorization": given})
    assert (answer.status_code, problem_of(answer)["type"]) == (401, "no-key")


def test_a_revoked_key_is_refused_at_once(program: Program) -> None:
    program.get("/me")
    keys.revoke(program.key, by=program.person)
    assert program.ask("GET", "/me").status_code == 401


def test_the_use_of_a_key_is_noted(program: Program) -> None:
    program.get("/me")
    program.key.refresh_from_db()
    assert program.key.used_from == "127.0.0.1"
    assert program.key.used_at is not None


def test_a_key_without_the_scope_is_told_which_one_is_missing(owner: User) -> None:
    account = AccountFactory.create(owner=owner)
    reader = Program(owner, [Scope.READ])
    told = problem_of(reader.ask("POST", f"/accounts/{account.pk}/pause"))
    assert (told["type"], told["scope"]) == ("missing-scope", "steer")
    account.refresh_from_db()
    assert account.status == "active"


def test_a_key_may_make_so_many_requests_per_minute(program: Program, settings: Settings) -> None:
    settings.API_PER_MINUTE = 3
    answers = [program.ask("GET", "/me") for _ in range(5)]
    # The minute of the clock may change in between, once.
    assert [a.status_code for a in answers].count(429) >= 1 or answers[-1]["RateLimit-Remaining"] != "0"
    refused = next(answer for answer in answers if answer.status_code == 429)
    assert problem_of(refused)["type"] == "too-many-requests"
    assert 1 <= int(refused["Retry-After"]) <= 60
    assert (refused["RateLimit-Limit"], refused["RateLimit-Remaining"]) == ("3", "0")


def test_each_minute_is_counted_anew_and_each_key_by_itself(redis: object, settings: Settings) -> None:
    settings.API_PER_MINUTE = 2
    now = timezone.now().replace(second=10)
    used = [rates.take(1, now=now) for _ in range(3)]
    assert [allowance and allowance.exceeded for allowance in used] == [False, False, True]
    other, later = rates.take(2, now=now), rates.take(1, now=now + timedelta(minutes=1))
    assert (other and other.used, later and later.used) == (1, 1)


def test_without_redis_requests_are_let_through(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    def away() -> Iterator[None]:
        raise RedisAwayError

    monkeypatch.setattr(rates, "client", away)
    answer = program.ask("GET", "/me")
    assert answer.status_code == 200
    assert "RateLimit-Limit" not in answer


@pytest.mark.parametrize(
    ("path", "field"),
    [("/accounts?state=active", "state"), ("/accounts?limit=0", "limit"), ("/accounts?cursor=x", "cursor"),
     ("/accounts?limit=1&limit=2", "limit"), ("/accounts?status=flying", "status"), ("/me?x=1", "x")],
)  # fmt: skip
def test_a_parameter_that_is_unknown_or_wrong_is_named(program: Program, path: str, field: str) -> None:
    told = problem_of(program.ask("GET", path))
    assert told["type"] == "invalid"
    assert [fault["field"] for fault in told["errors"]] == [field]


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        (b"{", 400, "cannot be read"),
        (b'{"per_day": NaN}', 400, "NaN"),
        (b'{"per_day": 1, "per_day": 2}', 400, "twice"),
        (b'{"per_day": "\\u0000"}', 400, "NUL"),
        (b'{"per_day": "\\ud800"}', 400, "cannot be read"),
        (b"[" * 100_000, 400, "nested"),
        (b'{"per_week": 5}', 422, "per_week"),
        (b'{"per_day": 0}', 422, "per_day"),
        (b"[]", 422, ""),
        (b"", 422, ""),
    ],
)
def test_a_body_that_cannot_be_right_is_refused(
    program: Program, owner: User, body: bytes, status: int, said: str
) -> None:
    account = AccountFactory.create(owner=owner)
    answer = program.ask("PUT", f"/accounts/{account.pk}/limits/message", body)
    told = problem_of(answer)
    assert (told["status"], said in json.dumps(told)) == (status, True)


@pytest.mark.parametrize(
    ("path", "position"),
    [
        ("/recipients", '["name", "\\u0000", 1]'),
        ("/tags", '["name", "\\ud800", 1]'),
        ("/accounts", '["id", 1e999, 1]'),
        ("/runs", '["id", Infinity, 1]'),
        ("/attempts", '["at", "0001-01-01", 1]'),
        ("/attempts", '["at", "2026-02-30T00:00:00Z", 1]'),
        ("/accounts", "[" * 300),
    ],
)
def test_a_cursor_that_was_never_given_is_refused(program: Program, path: str, position: str) -> None:
    cursor = base64.urlsafe_b64encode(position.encode()).decode().rstrip("=")
    told = problem_of(program.ask("GET", f"{path}?cursor={cursor}"))
    assert (told["type"], told["errors"][0]["field"]) == ("invalid", "cursor")


def test_another_type_of_body_is_refused(program: Program, owner: User) -> None:
    account = AccountFactory.create(owner=owner)
    answer = Client().put(
        f"/api/v1/accounts/{account.pk}/limits/message",
        "per_day=3",
        content_type="application/x-www-form-urlencoded",
        headers={"Authorization": f"Bearer {program.secret}"},
    )
    assert (answer.status_code, problem_of(answer)["type"]) == (415, "wrong-media-type")


@pytest.mark.parametrize(
    ("method", "path", "name"),
    [
        ("GET", "/nothing/here", "not-found"),
        ("GET", "/accounts/999999999", "not-found"),
        ("GET", "/accounts/99999999999999999999999", "invalid"),
        ("DELETE", "/me", "no-such-method"),
        ("GET", "/accounts/%00", "not-found"),
    ],
)
def test_every_error_is_a_problem(program: Program, method: str, path: str, name: str) -> None:
    assert problem_of(program.ask(method, path))["type"] == name


def test_an_error_of_ours_is_a_problem_that_tells_nothing(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("a secret")

    monkeypatch.setattr("api.routes.accounts.shown", broken)
    answer = program.ask("GET", "/accounts")
    assert (answer.status_code, problem_of(answer)["type"]) == (500, "error")
    assert "secret" not in answer.content.decode()


def test_answers_are_not_kept_by_anybody_between(program: Program) -> None:
    assert program.ask("GET", "/me")["Cache-Control"] == "no-store"
    assert program.ask("GET", "/nowhere")["Cache-Control"] == "no-store"


def test_a_method_that_is_not_known_is_answered_with_those_that_are(program: Program) -> None:
    assert program.ask("PATCH", "/me")["Allow"] == "GET"
