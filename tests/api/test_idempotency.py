"""An Idempotency-Key: one work, one answer, whatever is repeated and whoever dies."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from cryptography.fernet import Fernet
from django.db import connection
from django.http import HttpResponse
from django.test import RequestFactory
from django.utils import timezone
from pytest_django import Settings

from accounts.models import Account, User
from api import idempotency
from api.models import ApiKey, StoredAnswer
from tests.api.program import Program, problem_of
from tests.factories import AccountFactory, ApiKeyFactory, StoredAnswerFactory, TagFactory


def pause(program: Program, account: Account, name: str) -> Any:
    return program.ask("POST", f"/accounts/{account.pk}/pause", Idempotency_Key=name)


@pytest.fixture
def account(owner: User) -> Account:
    return AccountFactory.create(owner=owner)


def test_a_repeated_request_gets_the_first_answer_though_all_has_changed_since(
    program: Program, account: Account
) -> None:
    first = pause(program, account, "a")
    Account.objects.filter(pk=account.pk).update(status="active", name="Another name")
    again = pause(program, account, "a")
    assert (again.status_code, again.content) == (first.status_code, first.content)
    assert again["Idempotency-Replayed"] == "true"
    assert "Idempotency-Replayed" not in first
    account.refresh_from_db()
    assert account.status == "active"  # nothing was done again


def test_another_request_under_the_same_key_is_refused(
    program: Program, owner: User, account: Account
) -> None:
    pause(program, account, "a")
    other = AccountFactory.create(owner=owner)
    answer = pause(program, other, "a")
    assert (answer.status_code, problem_of(answer)["type"]) == (409, "idempotency-key-reused")
    other.refresh_from_db()
    assert other.status == "active"


def test_a_refusal_is_the_answer_too(program: Program, owner: User) -> None:
    account = AccountFactory.create(owner=owner, archived=True)
    path = f"/accounts/{account.pk}/resume"
    first = program.ask("POST", path, Idempotency_Key="a")
    Account.objects.filter(pk=account.pk).update(archived_at=None)
    again = program.ask("POST", path, Idempotency_Key="a")
    assert first.status_code == again.status_code == 409
    assert problem_of(again)["detail"] == problem_of(first)["detail"]


def test_what_a_key_may_not_do_is_not_remembered(owner: User, account: Account) -> None:
    program = Program(owner, ["read"])  # type: ignore[list-item]  # a word will do
    assert pause(program, account, "a").status_code == 403
    ApiKey.objects.filter(pk=program.key.pk).update(scopes=["steer"])
    assert pause(program, account, "a").status_code == 200


def test_after_a_day_the_key_is_free_again(program: Program, account: Account) -> None:
    pause(program, account, "a")
    StoredAnswer.objects.update(created_at=timezone.now() - timedelta(hours=24, seconds=1))
    Account.objects.filter(pk=account.pk).update(status="active")
    answer = pause(program, account, "a")
    assert "Idempotency-Replayed" not in answer
    account.refresh_from_db()
    assert account.status == "paused"


def test_two_programs_do_not_share_their_names(program: Program, owner: User, account: Account) -> None:
    pause(program, account, "a")
    assert "Idempotency-Replayed" not in pause(Program(owner), account, "a")


@pytest.mark.parametrize("name", ["x" * 256, "\xe4", "a\tb", "a b", ""])
def test_a_name_that_cannot_be_kept_is_refused(program: Program, account: Account, name: str) -> None:
    assert problem_of(pause(program, account, name))["errors"][0]["field"] == "Idempotency-Key"


def test_an_error_of_ours_keeps_nothing(
    program: Program, account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process that dies between doing and answering commits neither."""

    def dies(*_: Any) -> None:
        raise ZeroDivisionError

    with monkeypatch.context() as patch:
        patch.setattr("api.routes.accounts.shown", dies)
        assert pause(program, account, "a").status_code == 500
    account.refresh_from_db()
    assert (account.status, StoredAnswer.objects.count()) == ("active", 0)
    assert pause(program, account, "a").status_code == 200


@pytest.mark.django_db(transaction=True)
def test_many_equal_requests_at_once_do_their_work_once() -> None:
    key, made, gate = ApiKeyFactory.create(), list[int](), threading.Barrier(8)

    def work() -> HttpResponse:
        tag = TagFactory.create(owner=key.person, name=f"tag {len(made)}")
        made.append(tag.pk)
        return HttpResponse(json.dumps({"id": tag.pk}), content_type="application/json")

    def ask(_: int) -> bytes:
        gate.wait()
        try:
            return idempotency.once(key, "a", "f" * 64, work).content
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as threads:
        answers = set(threads.map(ask, range(8)))
    assert (len(made), len(answers)) == (1, 1)


@pytest.mark.django_db(transaction=True)
def test_the_second_of_two_waits_and_does_the_work_where_the_first_fails() -> None:
    key, begun, done = ApiKeyFactory.create(), threading.Event(), list[str]()

    def fails() -> HttpResponse:
        begun.set()
        raise ZeroDivisionError

    def first() -> None:
        try:
            with pytest.raises(ZeroDivisionError):
                idempotency.once(key, "a", "f" * 64, fails)
        finally:
            connection.close()

    def second() -> HttpResponse:
        done.append("second")
        return HttpResponse("{}")

    with ThreadPoolExecutor(1) as threads:
        running = threads.submit(first)
        assert begun.wait(10)
        assert idempotency.once(key, "a", "f" * 64, second).status_code == 200
        running.result()
    assert done == ["second"]


def test_a_secret_in_an_answer_is_not_stored_in_the_clear(program: Program) -> None:
    body = {"url": "https://example.com/hook", "events": ["run.finished"]}
    made = program.post("/webhooks", body, status=201, Idempotency_Key="a")
    with connection.cursor() as cursor:
        cursor.execute("SELECT row_to_json(a)::text FROM api_storedanswer a")
        (stored,) = cursor.fetchone()
    assert made["secret"] not in stored
    assert json.dumps(made["secret"])[1:-1] not in stored
    assert program.post("/webhooks", body, status=201, Idempotency_Key="a") == made


def test_an_answer_whose_key_is_lost_is_not_worked_out_anew(
    program: Program, account: Account, settings: Settings
) -> None:
    pause(program, account, "a")
    Account.objects.filter(pk=account.pk).update(status="active")
    settings.ENCRYPTION_KEYS = [Fernet.generate_key().decode()]
    told = problem_of(pause(program, account, "a"))
    assert (told["status"], told["type"], "cannot be read" in told["detail"]) == (409, "wrong-state", True)
    account.refresh_from_db()
    assert account.status == "active"


def test_old_answers_are_deleted(db: None) -> None:
    now = timezone.now()
    StoredAnswerFactory.create_batch(3, created_at=now - timedelta(hours=25))
    kept = StoredAnswerFactory.create(created_at=now - timedelta(hours=23))
    assert idempotency.forget(now=now) == 3
    assert StoredAnswer.objects.get() == kept


def test_the_border_of_a_form_does_not_make_it_another_request() -> None:
    def prints(content: bytes) -> set[str]:
        found = set()
        for border in ("one", "two"):
            body = (
                f'--{border}\r\nContent-Disposition: form-data; name="file"; filename="a.png"\r\n\r\n'.encode()
                + content
                + f"\r\n--{border}--\r\n".encode()
            )
            request = RequestFactory().generic(
                "POST", "/api/v1/media", body, content_type=f"multipart/form-data; boundary={border}"
            )
            found.add(idempotency.fingerprint_of(request))
        return found

    assert len(prints(b"picture")) == 1
    assert prints(b"picture") != prints(b"another")
