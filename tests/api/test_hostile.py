"""Requests that want to break the API: each gets a problem that says what is wrong, and nothing happens."""

import json
import time
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from accounts.models import Account, Recipient, Tag, User
from api import keys
from tests.api.program import ROOT, Program, problem_of
from tests.api.things import Things
from tests.factories import AccountFactory, RecipientFactory, TagFactory, TeamMateFactory

pytestmark = pytest.mark.django_db
MEGABYTE = 2**20


@pytest.fixture
def account(owner: User) -> Account:
    account: Account = AccountFactory.create(owner=owner)
    return account


@pytest.fixture
def anna(owner: User) -> Recipient:
    anna: Recipient = RecipientFactory.create(owner=owner, name="Anna")
    return anna


def test_a_body_of_fifty_megabytes_is_refused_without_reading_it(program: Program) -> None:
    body = b'{"name": "' + b"x" * (50 * MEGABYTE) + b'"}'
    began = time.process_time()
    told = problem_of(program.ask("POST", "/tags", body))
    assert (told["status"], told["type"]) == (413, "too-large")
    assert time.process_time() - began < 2
    assert not Tag.objects.exists()


@pytest.mark.parametrize("depth", [500, 100_000])
@pytest.mark.parametrize("pair", [("[", "]"), ('{"a":', "}")])
def test_json_that_is_nested_deeply_is_refused(program: Program, depth: int, pair: tuple[str, str]) -> None:
    body = (pair[0] * depth + "1" + pair[1] * depth).encode()
    assert program.ask("POST", "/tags", body).status_code in {400, 422}


@pytest.mark.parametrize("text", ["\\u0000", "\\ud800", "\\udc00\\ud800"])
@pytest.mark.parametrize("path", ["/tags", "/recipients"])
def test_characters_that_cannot_be_stored_are_refused(program: Program, text: str, path: str) -> None:
    body = (
        '{"name": "T"}'
        if path == "/tags"
        else '{"recipients": [{"channel": "email", "address": "a@b.c", "name": "T"}]}'
    )
    answer = program.ask("POST", path, body.replace("T", text).encode())
    assert problem_of(answer)["status"] == 400


@pytest.mark.parametrize(
    "at",
    [
        *(
            "0000-01-01T00:00:00Z",
            "0001-01-01T00:00:00Z",
            "0001-01-01T00:00:00+14:00",
            "10000-01-01T00:00:00Z",
        ),
        *("9999-12-31T23:59:59Z", "9999-12-31T23:59:59-12:00", "1e400", "99999999999999", "-62135596801"),
    ],
)
def test_times_at_the_ends_of_the_calendar_break_nothing(
    program: Program, account: Account, anna: Recipient, at: str
) -> None:
    message = {"accounts": [account.pk], "recipient": anna.pk, "text": "Hello", "not_before": at}
    item = {"address": anna.address, "text": "Hello", "own_id": "1", "planned_at": at}
    queue = Things(program.person).ids["queues"]
    assert program.ask("POST", "/messages", message).status_code < 500
    assert program.ask("POST", "/messages", message | {"dry_run": True}).status_code < 500
    assert program.ask("POST", f"/queues/{queue}/items", {"items": [item]}).status_code < 500


@pytest.mark.parametrize("number", [2**63, 2**64, 10**30, -1, 0])
def test_numbers_that_no_row_can_have_find_none(program: Program, account: Account, number: int) -> None:
    for method, path, body in (
        ("GET", f"/recipients/{number}", None),
        ("GET", f"/recipients?tag={number}", None),
        ("POST", "/messages", {"accounts": [number], "recipient": number, "text": "Hello"}),
        ("POST", f"/tags/{number}/recipients", {"add": [number]}),
        ("POST", "/tags", {"name": "T", "owner": number}),
    ):
        answer = program.ask(method, path, body)
        assert answer.status_code in {403, 404, 422} or (answer.status_code == 200 and method == "GET"), path


@pytest.mark.parametrize("name", ["X-HTTP-Method-Override", "X-Method-Override", "X-HTTP-Method"])
def test_a_header_does_not_change_the_method(program: Program, owner: User, name: str) -> None:
    tag = TagFactory.create(owner=owner)
    headers = {"Authorization": f"Bearer {program.secret}", name: "DELETE"}
    for how in ("get", "post"):
        getattr(Client(), how)(f"{ROOT}/tags/{tag.pk}?_method=DELETE", headers=headers)
    assert Tag.objects.filter(pk=tag.pk).exists()


def test_no_other_site_is_let_in(program: Program) -> None:
    other = {"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}
    headers = other | {"Authorization": f"Bearer {program.secret}"}
    for answer in (
        Client().options(f"{ROOT}/me", headers=headers),
        Client().get(f"{ROOT}/me", headers=headers),
    ):
        assert not [name for name in answer.headers if name.lower().startswith("access-control")]


@pytest.mark.parametrize(
    "name", ["A\r\nSet-Cookie: x=1", "A\u2028B", "=HYPERLINK(1)", "<script>", "../../etc"]
)
def test_a_name_reaches_no_header(program: Program, anna: Recipient, name: str) -> None:
    program.ask("PATCH", f"/recipients/{anna.pk}", {"name": name})
    answer = program.ask("GET", f"/recipients/{anna.pk}/data")
    assert answer.status_code == 200
    assert "Set-Cookie" not in answer.headers
    assert answer["Content-Type"].startswith("application/json")


@pytest.mark.parametrize(
    "kind",
    ["text/plain", "application/xml", "multipart/form-data; boundary=x", "application/json; charset=hex"],
)
def test_a_wrong_type_of_body_is_refused(program: Program, kind: str) -> None:
    headers = {"Authorization": f"Bearer {program.secret}"}
    answer = Client(raise_request_exception=False).generic(
        "POST", f"{ROOT}/tags", b'{"name": "T"}', content_type=kind, headers=headers
    )
    assert answer.status_code in {201, 400, 415, 422}
    assert (answer.status_code == 201) is kind.startswith("application/json")


def test_a_key_that_is_revoked_gets_no_stored_answer_either(program: Program) -> None:
    body, name = {"name": "T"}, "one-name"
    assert program.ask("POST", "/tags", body, Idempotency_Key=name).status_code == 201
    keys.revoke(program.key, by=program.person)
    answer = program.ask("POST", "/tags", body, Idempotency_Key=name)
    assert problem_of(answer)["type"] == "no-key"


def test_a_cursor_shows_no_row_of_another_owner(program: Program, stranger: User) -> None:
    TagFactory.create_batch(3, owner=stranger)
    theirs = Program(stranger).get("/tags?limit=1")["next_cursor"]
    assert program.get(f"/tags?cursor={theirs}")["items"] == []
    assert problem_of(program.ask("GET", f"/runs?cursor={theirs}"))["errors"][0]["field"] == "cursor"


def test_a_member_who_was_removed_has_nothing_in_the_next_request(owner: User, anna: Recipient) -> None:
    member = TeamMateFactory.create(owner=owner, manage=True)
    program = Program(member.mate)
    assert program.ask("GET", f"/recipients/{anna.pk}").status_code == 200
    member.delete()
    assert program.ask("GET", f"/recipients/{anna.pk}").status_code == 404


def test_a_message_asks_the_database_little(
    program: Program,
    account: Account,
    anna: Recipient,
    django_assert_max_num_queries: Any,
    settings: Settings,
) -> None:
    """Each statement costs a third of a millisecond of processor time."""
    body = {"accounts": [account.pk], "recipient": anna.pk, "text": "Hello", "start_hour": 0, "end_hour": 24}
    program.ask("POST", "/messages", body, Idempotency_Key="warm")
    with django_assert_max_num_queries(47):
        assert program.ask("POST", "/messages", body, Idempotency_Key="one").status_code == 201
    with django_assert_max_num_queries(6):
        program.ask("POST", "/messages", body, Idempotency_Key="one")
    with django_assert_max_num_queries(2):
        program.get("/me")


def test_an_end_of_a_key_holds_while_it_is_used(program: Program) -> None:
    assert program.ask("GET", "/me").status_code == 200
    type(program.key).objects.update(ends_at=timezone.now() - timedelta(seconds=1))
    assert json.loads(program.ask("GET", "/me").content)["type"].endswith("no-key")
