"""Every address of the site, with input that nobody means: answered with a page or a refusal, never with an error."""

import gc
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any
from urllib.parse import quote, urlencode
from uuid import uuid4

import pytest
from asgiref.testing import ApplicationCommunicator
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver
from redis import Redis

from accounts.models import Account, Recipient, User
from config.asgi import application
from delivery.models import Run
from reminders.models import Reminder
from tests.factories import AccountFactory, RecipientFactory, ReminderFactory, RunFactory

pytestmark = pytest.mark.django_db

FIRST = 2147483648  # above what the other factories count to
ODD = re.compile(r"/0/|92233720|0{20}|%|xxxx|yyyy|\.\.|-1|_5F")
HUGE = 10**40
DEEP = b"[" * 100_000 + b"]" * 100_000
# Values for a part of an address, by the kind of its converter.
VALUES: dict[str, list[str]] = {
    "int": [str(FIRST), "0", "9223372036854775808", str(HUGE)],
    "uuid": [str(uuid4()), "00000000-0000-0000-0000-000000000000"],
    "str": ["x", "a\x00b", "\U0001f600", "x" * 5000, "%00", "..", "-1"],
    "path": [str(FIRST), "x", "a\x00b", str(HUGE), "x/../y", "_5F", "%ff"],
    "slug": ["x", "y" * 5000],
}
TEXTS = [
    "",
    "a\x00b",
    "\ud800",
    "x" * 300_000,
    "-1",
    str(HUGE),
    "1e400",
    "NaN",
    "\u202e",
    "[]",
    "{}",
    "9999-99-99",
]
NAMES = [
    "q", "page", "after", "before", "show", "status", "account", "date", "from", "to", "runs", "mark", "next", "pk",
    "ids", "id", "name", "phone", "tag", "tags", "reason", "action", "_selected_action", "confirmed", "back_to", "key",
    "zone", "file", "text", "subject", "address", "email", "number", "channel", "kind", "step", "position", "value",
]  # fmt: skip
BODIES: list[tuple[bytes, str]] = [
    (b"", "application/json"),
    (b"\x00", "application/json"),
    (
        b'{"endpoint": "https://fcm.googleapis.com/\\u0000", "keys": {"p256dh": "a", "auth": "b"}}',
        "application/json",
    ),
    (
        b'{"endpoint": "https://fcm.googleapis.com/\\ud800", "keys": {"p256dh": "a", "auth": "b"}}',
        "application/json",
    ),
    (b'{"endpoint": [], "keys": 3}', "application/json"),
    (b"null", "application/json"),
    (DEEP, "application/json"),
    (str(HUGE).encode() * 200, "application/json"),
    (b"--x\r\nContent-Disposition: form-data; name=", "multipart/form-data; boundary=x"),
    (b"", "multipart/form-data"),
    (b"--\xff\r\n", "multipart/form-data; boundary=\xff"),
    (
        b'--x\r\nContent-Disposition: form-data; name="file"; filename="a\x00b"\r\n\r\n\x00\r\n--x--\r\n',
        "multipart/form-data; boundary=x",
    ),
    (b"a=" + b"%ff%fe%00", "application/x-www-form-urlencoded; charset=utf-8"),
    (b"a=1", "application/x-www-form-urlencoded; charset=no-such"),
    (b"&".join(b"n%d=1" % number for number in range(2000)), "application/x-www-form-urlencoded"),
    (b"<x/>", "text/xml"),
]


def patterns(resolver: URLResolver, before: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    for entry in resolver.url_patterns:
        route = before + str(entry.pattern)
        if isinstance(entry, URLResolver):
            yield from patterns(entry, route)
        elif isinstance(entry, URLPattern):
            yield route, dict(entry.pattern.converters)


@cache
def addresses() -> list[str]:
    """Return every address with a plain value first, then with each odd one of its kind."""
    found: dict[str, None] = {}
    for route, converters in patterns(get_resolver()):
        if "^" in route or "(?P" in route:
            continue  # the admin's own catch-all
        kinds = {
            name: type(converter).__name__.removesuffix("Converter").lower()
            for name, converter in converters.items()
        }
        kinds = {name: {"string": "str"}.get(kind, kind) for name, kind in kinds.items()}
        for number in range(max((len(VALUES.get(kind, ["x"])) for kind in kinds.values()), default=1)):
            address = route
            for name, kind in kinds.items():
                values = VALUES.get(kind, ["x"])
                for written in (f"<{kind}:{name}>", f"<{name}>"):
                    address = address.replace(written, quote(values[number % len(values)], safe="/"))
            found[f"/{address}"] = None
    return list(found)


@pytest.fixture
def crowd(owner: User, redis: Redis) -> None:
    """Rows with the ids that the addresses name first, out of the way of those that are made later."""
    account = AccountFactory.create(owner=owner, pk=FIRST)
    RecipientFactory.create(owner=owner, pk=FIRST)
    reminder = ReminderFactory.create(owner=owner, pk=FIRST)
    RunFactory.create(reminder=reminder, pk=FIRST).run_accounts.create(account=account)


@dataclass(frozen=True, slots=True)
class Visitor:
    """Somebody, and the addresses that are theirs to ask for."""

    client: Client
    admin: bool

    def addresses(self, *, plain: bool = True) -> list[str]:
        """Return all addresses but those that log out: after them, requests would have no user."""
        found = [
            each
            for each in addresses()
            if each.startswith("/admin/") == self.admin and not each.endswith("/logout/")
        ]
        return [each for each in found if not ODD.search(each)] if plain else found


@pytest.fixture(params=["nobody", "owner", "boss"])
def visitor(request: pytest.FixtureRequest, owner: User) -> Visitor:
    client = Client(raise_request_exception=False)
    if request.param == "owner":
        client.force_login(owner)
    if request.param == "boss":
        client.force_login(User.objects.create_superuser("boss"))
    return Visitor(client, admin=request.param == "boss")


def odd(answer: Any, what: str) -> list[str]:
    return (
        [f"{answer.status_code} {what[:200]}"]
        if answer.status_code >= 500 and answer.status_code != 503
        else []
    )


def rotated(turn: int) -> dict[str, str]:
    """A value for every name, another one in every turn."""
    return {name: TEXTS[(number + turn) % len(TEXTS)] for number, name in enumerate(NAMES)}


def test_the_walk_sees_the_site() -> None:
    found = set(addresses())
    assert len(found) > 150
    assert {"/login/", f"/accounts/{FIRST}/check/", f"/runs/{FIRST}/pause"} <= found


def test_odd_parts_of_addresses(visitor: Visitor, crowd: None) -> None:
    problems = [
        problem
        for address in visitor.addresses(plain=False)
        for problem in odd(visitor.client.get(address), f"GET {address}")
    ]
    assert problems == []


def test_odd_questions(visitor: Visitor, crowd: None) -> None:
    problems = []
    for turn, address in enumerate(visitor.addresses()):
        values = {name: value[:3000] for name, value in rotated(turn).items()}
        query = urlencode(values, errors="replace")
        problems += odd(visitor.client.get(f"{address}?{query}"), f"GET {address} in turn {turn}")
    assert problems == []


def test_odd_forms(visitor: Visitor, crowd: None) -> None:
    problems = []
    for number, address in enumerate(visitor.addresses()):
        if number % 40 == 0:
            gc.collect()  # pages that repeat long texts refer to themselves: they would fill gigabytes
        for turn in range(number, number + len(TEXTS), 3):
            values = {
                name: value.encode("utf-8", "replace").decode() for name, value in rotated(turn).items()
            }
            problems += odd(visitor.client.post(address, values), f"POST {address} in turn {turn}")
    assert problems == []


def test_odd_bodies(visitor: Visitor, crowd: None) -> None:
    problems = []
    for turn, address in enumerate(visitor.addresses()):
        # All of them where somebody reads JSON, and half of them in turn elsewhere.
        chosen = range(len(BODIES)) if "/notifications/" in address else range(turn, turn + 8)
        for number, (body, kind) in [(each, BODIES[each % len(BODIES)]) for each in chosen]:
            answer = visitor.client.generic("POST", address, body, content_type=kind)
            problems += odd(answer, f"POST {address} body {number}")
    assert problems == []


FIELDS = (
    "name",
    "username",
    "password",
    "q",
    "title",
    "zone",
    "tags",
    "reason",
    "next",
    "address",
    "text",
    "how",
)


@pytest.mark.parametrize("encoding", ["hex", "rot13", "idna", "undefined", "unicode_escape", "utf-7"])
def test_odd_encodings(visitor: Visitor, crowd: None, encoding: str) -> None:
    """Django would read forms in the encoding that their header names, be it one for text or not."""
    body = b"".join(
        b'--x\r\nContent-Disposition: form-data; name="%s"\r\n\r\na\\x00b\\ud800+AAA-\r\n' % name.encode()
        for name in FIELDS
    )
    kind = f"multipart/form-data; boundary=x; charset={encoding}"
    problems = []
    for address in visitor.addresses()[::3]:
        answer = visitor.client.generic("POST", address, body + b"--x--\r\n", content_type=kind)
        problems += odd(answer, f"POST {address}")
    assert problems == []


@pytest.mark.parametrize("kind", [b"text/plain; charset*=nonsense''x", b"text/plain; boundary*=none'en'%41"])
async def test_a_content_type_in_an_unknown_encoding(kind: bytes) -> None:
    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": "POST",
        "path": "/login/",
        "query_string": b"",
        "headers": [(b"host", b"testserver"), (b"content-type", kind)],
    }
    caller: Any = ApplicationCommunicator(application, scope)  # type: ignore[no-untyped-call]
    await caller.send_input({"type": "http.request", "body": b"a=b"})
    assert (await caller.receive_output(timeout=10))["status"] == 400
    await caller.receive_output(timeout=10)
    await caller.wait(timeout=10)


DEEP_JSON = "[" * 50_000 + "]" * 50_000


@pytest.mark.parametrize("fields", [DEEP_JSON, '{"a": "\\u0000"}', '{"a": "\\ud800"}'])
def test_odd_json_in_the_admin(owner: User, fields: str) -> None:
    client = Client(raise_request_exception=False)
    client.force_login(User.objects.create_superuser("boss"))
    values = {"owner": owner.pk, "channel": "email", "kind": "person", "address": "a@b.example", "name": "A"}
    answer = client.post("/admin/accounts/recipient/add/", {**values, "fields": fields})
    assert answer.status_code == 200
    assert "fields" in answer.context["adminform"].form.errors
    answer = client.post("/admin/accounts/account/add/", {"new_credentials": fields})
    assert answer.status_code == 200


@pytest.mark.parametrize("zone", ["Mars/Phobos", "../etc/passwd", "UTC ", "x" * 300])
def test_what_is_no_zone_is_told_in_the_admin(owner: User, crowd: None, zone: str) -> None:
    client = Client()
    client.force_login(User.objects.create_superuser("boss"))
    when = {"fire_at_0": "2026-11-20", "fire_at_1": "09:30", "fire_at": "2026-11-20T09:30"}
    for page in (f"accounts/account/{FIRST}", f"reminders/reminder/{FIRST}"):
        answer = client.post(f"/admin/{page}/change/", {"zone": zone, **when})
        assert ("zone" in answer.context["adminform"].form.errors) == (zone.strip() != "UTC"), page


def test_odd_methods(visitor: Visitor, crowd: None) -> None:
    problems = []
    for address in visitor.addresses():
        problems += odd(visitor.client.generic("NONSENSE", address, b"x"), address)
    assert problems == []


def test_a_nul_reaches_no_view(client: Client, db: None) -> None:
    for address in ("/recipients/%00", "/unsubscribe/a%00b"):
        assert client.get(address).status_code == 404
    assert client.get("/login/", headers={"User-Agent": "a\x00b"}).status_code == 400
    for question in ("/a%00", "/%0%000a", "%00/a%00%00"):
        assert client.get(f"/login/?next={question}").context["next"] == "/a"


def changes(row: Any) -> dict[str, Any]:
    row.refresh_from_db()
    return {field.attname: getattr(row, field.attname) for field in row._meta.concrete_fields}


@pytest.mark.parametrize("who", ["stranger", "nobody"])
def test_no_address_shows_or_changes_what_is_somebody_elses(
    owner: User, stranger: User, crowd: None, who: str
) -> None:
    client = Client(raise_request_exception=False)
    if who == "stranger":
        client.force_login(stranger)
    models = (Account, Recipient, Reminder, Run)
    before = [changes(model._default_manager.get(pk=FIRST)) for model in models]
    named = [each for each in addresses() if f"/{FIRST}" in each and not each.startswith("/admin/")]
    assert len(named) > 40
    found = []
    for address in named:
        answers = [client.get(address), client.post(address, {"confirmed": "1", "how": "x", "name": "y"})]
        for answer in answers:
            away = answer.status_code == 302 and answer.headers["Location"].startswith("/login/")
            refused = answer.status_code in {401, 403, 404, 405}  # 401: the API, which knows no sessions
            if not (refused or away):
                found.append(f"{answer.status_code} {address}")
    assert found == []
    assert [changes(model._default_manager.get(pk=FIRST)) for model in models] == before


def test_a_team_mate_who_only_reads_changes_nothing(owner: User, reader: User, crowd: None) -> None:
    client = Client(raise_request_exception=False)
    client.force_login(reader)
    models = (Account, Recipient, Reminder, Run)
    before = [changes(model._default_manager.get(pk=FIRST)) for model in models]
    for address in [each for each in addresses() if f"/{FIRST}" in each and not each.startswith("/admin/")]:
        answer = client.post(address, {"confirmed": "1", "how": "x", "name": "y", "text": "z"})
        assert answer.status_code in {200, 401, 403, 404, 405}, address
    assert [changes(model._default_manager.get(pk=FIRST)) for model in models] == before
