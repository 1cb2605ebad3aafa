"""Every route with every kind of person, and with a key of each scope."""

import pytest
from django.db.models import Model
from django.test import Client

from accounts.models import Account, Recipient, Tag, User
from api.scopes import Scope
from delivery.models import Run, RunTarget
from reminders.models import Media, Reminder
from tests.api.program import ROOT, Program, problem_of
from tests.api.things import Route, Things, routes

ROUTES = routes()
OURS: tuple[type[Model], ...] = (Account, Recipient, Tag, Reminder, Run, RunTarget, Media)
# Answers that say that the person was let in: the row's state may refuse, or the file may be missing.
LET_IN = {200, 201, 202, 204, 409, 422}
every_route = pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.name)
writing = pytest.mark.parametrize(
    "route", [route for route in ROUTES if route.method != "GET"], ids=lambda route: route.name
)


def names_a_row(route: Route) -> bool:
    return "{" in route.path


def rows() -> dict[str, list[object]]:
    """Return all rows of the owner's things, to see whether anything changed."""
    return {model.__name__: list(model._default_manager.order_by("pk").values()) for model in OURS}


@every_route
def test_the_owner_a_mate_and_staff_may_ask_it(route: Route, owner: User, mate: User, staff: User) -> None:
    for person in (owner, mate, staff):
        things = Things(owner)
        answer = Program(person).ask(route.method, things.address(route), things.body(route))
        assert answer.status_code in LET_IN, answer.content


@every_route
def test_a_stranger_finds_no_row_and_changes_none(route: Route, owner: User, stranger: User) -> None:
    things = Things(owner)
    before = rows()
    answer = Program(stranger).ask(route.method, things.address(route), things.body(route))
    if names_a_row(route):
        assert answer.status_code == 404, answer.content
    elif route.method == "GET":
        assert '"items": []' in answer.content.decode() or route.path == "/me"
    else:
        assert answer.status_code in {403, 422}, answer.content
    assert rows() == before


@writing
def test_a_reader_is_refused_with_a_sentence_and_changes_nothing(
    route: Route, owner: User, reader: User
) -> None:
    things = Things(owner)
    before = rows()
    answer = Program(reader).ask(route.method, things.address(route), things.body(route))
    if route.path == "/media":
        assert answer.status_code == 422  # no file; for another owner see test_media.py
    else:
        assert (answer.status_code, problem_of(answer)["type"]) == (403, "not-allowed"), answer.content
    assert rows() == before


@pytest.mark.parametrize("scope", Scope)
@every_route
def test_a_key_is_let_in_by_the_scope_of_the_route_alone(route: Route, scope: Scope, owner: User) -> None:
    things = Things(owner)
    before = rows()
    answer = Program(owner, [scope]).ask(route.method, things.address(route), things.body(route))
    if route.scope in ("", scope.value):
        assert answer.status_code in LET_IN
    else:
        assert problem_of(answer)["type"] == "missing-scope"
        assert rows() == before


@every_route
def test_without_a_key_nobody_is_let_in(route: Route, client: Client, owner: User) -> None:
    things = Things(owner)
    client.force_login(owner)
    answer = client.generic(route.method, ROOT + things.address(route), "{}", content_type="application/json")
    assert answer.status_code == 401


def test_each_route_has_the_scope_of_its_kind() -> None:
    data = "/recipients/{pk}/data"  # a copy of everything about a person
    assert {route.scope for route in ROUTES if route.method == "GET" and route.path != data} == {"read", ""}
    assert {route.scope for route in ROUTES if route.method != "GET"} == {"send", "steer", "manage"}
