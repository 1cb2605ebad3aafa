"""The page to try the API."""

from django.test import Client

from accounts.models import User
from tests.api.things import routes

PAGE = "/keys/try/"


def test_it_shows_every_route_under_the_strict_policy(client: Client, owner: User) -> None:
    client.force_login(owner)
    answer = client.get(PAGE)
    text = answer.content.decode()
    for route in routes():
        assert f"{route.method} /api/v1{route.path}" in text
    assert "'unsafe-inline'" not in answer["Content-Security-Policy"]
    assert "<script>" not in text
    assert " onclick" not in text


def test_bodies_have_an_example_with_the_names_of_their_fields(client: Client, owner: User) -> None:
    client.force_login(owner)
    text = client.get(PAGE).content.decode()
    for name in ("per_day", "recipients", "confirmed", "not_before", "second_parts"):
        assert name in text


def test_a_visitor_is_asked_to_log_in(client: Client, db: None) -> None:
    assert client.get(PAGE)["Location"].startswith("/login/")
