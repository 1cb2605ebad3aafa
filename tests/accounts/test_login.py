"""Logging in: guessing is stopped, and nobody is locked out by somebody else."""

from typing import Any

import pytest
from django.test import Client
from pytest_django import Settings
from redis import Redis

from accounts.login import COOKIE, KNOWN_LIMIT
from accounts.models import User
from tests.factories import OperatorFactory

HERE, THERE = "198.51.100.1", "203.0.113.9"
PASSWORD = "right-horse-7"


@pytest.fixture(autouse=True)
def limits(settings: Settings, redis: Redis) -> None:
    settings.AXES_FAILURE_LIMIT, settings.LOGIN_ADDRESS_LIMIT = 3, 8


@pytest.fixture
def ann(db: None) -> User:
    return _person("ann")


@pytest.fixture
def ben(db: None) -> User:
    return _person("ben")


def _person(name: str) -> User:
    user = OperatorFactory.create(username=name)
    user.set_password(PASSWORD)
    user.save()
    return user


def log_in(
    name: str,
    password: str = PASSWORD,
    *,
    address: str = HERE,
    browser: Client | None = None,
    headers: dict[str, str] | None = None,
) -> Any:
    return (browser or Client()).post(
        "/login/", {"username": name, "password": password}, REMOTE_ADDR=address, headers=headers
    )


def guess(name: str, times: int, *, address: str = HERE, browser: Client | None = None) -> list[int]:
    return [log_in(name, "wrong", address=address, browser=browser).status_code for _ in range(times)]


def test_a_name_that_was_guessed_waits_at_that_address_and_nowhere_else(ann: User) -> None:
    assert guess("ann", 4)[-1] == 429
    assert log_in("ann").status_code == 429
    assert log_in("ann", address=THERE).status_code == 302


def test_other_names_go_on_at_that_address(ann: User, ben: User) -> None:
    guess("ann", 5)
    assert log_in("ben").status_code == 302


def test_an_address_that_guesses_at_many_names_waits(ann: User) -> None:
    for number in range(8):
        guess(f"nobody-{number}", 1)
    answer = log_in("ann")
    assert (answer.status_code, answer["Retry-After"]) == (429, "900")
    assert "from your network" in answer.content.decode()
    assert log_in("ann", address=THERE).status_code == 302


def test_a_neighbour_cannot_lock_out_who_has_logged_in_before(ann: User) -> None:
    browser = Client()
    assert log_in("ann", browser=browser).status_code == 302
    browser.post("/logout/")
    guess("ann", 5)
    for number in range(10):
        guess(f"nobody-{number}", 1)
    assert log_in("ann").status_code == 429
    assert log_in("ann", browser=browser).status_code == 302


def test_a_known_browser_cannot_guess_for_ever(ann: User) -> None:
    browser = Client()
    log_in("ann", browser=browser)
    browser.post("/logout/")
    assert 429 in guess("ann", KNOWN_LIMIT + 5, browser=browser)
    assert log_in("ann", browser=browser).status_code == 429


def test_a_known_browser_is_known_for_its_own_name(ann: User, ben: User) -> None:
    browser = Client()
    log_in("ann", browser=browser)
    browser.post("/logout/")
    assert guess("ben", 5, browser=browser)[-1] == 429


@pytest.mark.parametrize("forged", ["", "x", "eyJuYW1lIjoiYW5uIn0:1abcde:forged"])
def test_a_forged_cookie_helps_nobody(ann: User, forged: str) -> None:
    guess("ann", 5)
    browser = Client()
    browser.cookies[COOKIE] = forged
    assert log_in("ann", browser=browser).status_code == 429


def test_a_new_password_forgets_all_browsers(ann: User) -> None:
    browser = Client()
    log_in("ann", browser=browser)
    browser.post("/logout/")
    ann.set_password("another-horse-8")
    ann.save()
    guess("ann", 5)
    assert log_in("ann", "another-horse-8", browser=browser).status_code == 429


def test_a_claimed_address_changes_nothing_for_a_stranger(ann: User) -> None:
    for number in range(5):
        log_in("ann", "wrong", headers={"X-Forwarded-For": f"192.0.2.{number}"})
    assert log_in("ann", headers={"X-Forwarded-For": "192.0.2.99"}).status_code == 429


def test_behind_a_trusted_proxy_people_are_told_apart(ann: User, settings: Settings) -> None:
    settings.TRUSTED_PROXIES = ["10.0.0.1"]
    for _ in range(5):
        log_in("ann", "wrong", address="10.0.0.1", headers={"X-Forwarded-For": f"1.1.1.1, {HERE}"})
    assert log_in("ann", address="10.0.0.1", headers={"X-Forwarded-For": HERE}).status_code == 429
    assert log_in("ann", address="10.0.0.1", headers={"X-Forwarded-For": THERE}).status_code == 302


def test_neighbours_in_one_ipv6_network_count_as_one_sender(ann: User) -> None:
    for number in range(5):
        log_in("ann", "wrong", address=f"2001:db8::{number}")
    assert log_in("ann", address="2001:db8::ffff").status_code == 429
    assert log_in("ann", address="2001:db8:0:1::1").status_code == 302


@pytest.mark.parametrize("name", ["n" * 256, "n" * 100_000, "a\x00b", "\ud800", "\uff41nn", "' OR 1=1"])
def test_a_name_that_nobody_has_is_refused_like_any_other(db: None, name: str) -> None:
    answer = log_in(name.encode("utf-8", "replace").decode(), "wrong")
    assert answer.status_code == 200
    assert answer.context["form"].errors


@pytest.mark.parametrize("header", ["User-Agent", "Accept", "Accept-Language", "X-Forwarded-For", "Referer"])
@pytest.mark.parametrize("value", ["x" * 10_000, "a\x00b", "\xff\xfe"])
def test_strange_headers_are_no_error(db: None, header: str, value: str) -> None:
    assert log_in("nobody", "wrong", headers={header: value}).status_code in {200, 400}
