"""Addresses of files: they cannot be guessed, changed or read, and end."""

import json
import time
from dataclasses import replace

import pytest
from cryptography.fernet import Fernet
from pytest_django import Settings

from accounts.encryption import cipher
from config.web.log_secrets import without_secret
from delivery.file_addresses import tokens
from delivery.file_addresses.tokens import NotAnAddressError, Ticket

BASE = "http://10.0.0.5:8000"
TICKET = Ticket(
    file="ab/" + "ab" * 32 + "_x7Yz1Q2", content_type="image/png", account_id=7, run_id=12, until=2**31
)


@pytest.fixture(autouse=True)
def _set_up(settings: Settings) -> None:
    settings.FILES_URL = BASE


def path_of(ticket: Ticket) -> str:
    return tokens.url_of(ticket).removeprefix(BASE)


@pytest.mark.parametrize(
    ("ticket", "end"),
    [
        (TICKET, "/file.png"),
        (replace(TICKET, run_id=None), "/file.png"),
        (replace(TICKET, content_type="video/mp4"), "/file.mp4"),
        (replace(TICKET, content_type="strange/ünknown"), "/file"),
    ],
)
def test_an_address_is_read_as_it_was_made(ticket: Ticket, end: str) -> None:
    assert tokens.read(path_of(ticket)) == ticket
    assert path_of(ticket).endswith(end)


def test_an_address_shows_nothing_of_what_it_says_and_never_is_the_same() -> None:
    path = path_of(TICKET)
    assert "abab" not in path
    assert path != path_of(TICKET)
    assert len(BASE + path_of(replace(TICKET, file="ab/" + "é" * 117))) < 2083  # the most that gateways take


def test_no_log_has_its_end() -> None:
    assert without_secret(f"GET {tokens.url_of(TICKET)} failed") == f"GET {BASE}/files/... failed"


@pytest.mark.parametrize(
    "spoil",
    [
        lambda path: path[:-1],
        lambda path: path.replace("/file.png", "/file.jpg"),
        lambda path: path.replace("/file.png", ""),
        lambda path: path + "/..",
        lambda path: path[:30] + ("A" if path[30] != "A" else "B") + path[31:],
        lambda path: path.replace("/files/", "/files//"),
        lambda path: "/files/",
        lambda path: "/files/" + "x" * 5000,
        lambda path: "/files/é/file.png",
        lambda path: path.replace("/files/", "/media/"),
    ],
)
def test_what_was_changed_is_no_address(spoil: object) -> None:
    assert callable(spoil)
    with pytest.raises(NotAnAddressError):
        tokens.read(spoil(path_of(TICKET)))


OTHERS: list[object] = [
    {"token": "of an account"},
    [],
    ["other", *[1] * 5],
    ["file", "a", "b", 1, "2", 3],
    "file",
    [[[[]]]],
]


@pytest.mark.parametrize("said", [json.dumps(other).encode() for other in OTHERS] + [b"\xff\xfe"])
def test_what_the_same_keys_encrypted_for_something_else_is_no_address(said: bytes) -> None:
    token = cipher().encrypt(said).decode().rstrip("=")
    with pytest.raises(NotAnAddressError):
        tokens.read(f"/files/{token}/file.png")


def test_keys_rotate_with_those_of_credentials(settings: Settings) -> None:
    path = path_of(TICKET)
    old, new = settings.ENCRYPTION_KEYS, Fernet.generate_key().decode()
    settings.ENCRYPTION_KEYS = [new, *old]
    assert tokens.read(path) == TICKET
    settings.ENCRYPTION_KEYS = [new]
    with pytest.raises(NotAnAddressError):
        tokens.read(path)


def test_an_address_ends() -> None:
    assert replace(TICKET, until=int(time.time())).over
    assert not replace(TICKET, until=int(time.time()) + 5).over
