"""Every address that names a row, asked as every kind of person; docs/people.md says which role each needs.

The table of the document is the list: an address that is not in it fails, and so does one that behaves otherwise.
"""

import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from http import HTTPStatus
from typing import Any

import pytest
from django.core.files.base import ContentFile
from django.test import Client
from django.urls import NoReverseMatch, URLPattern, URLResolver, get_resolver, reverse
from redis import Redis

from accounts.models import Account, Import, Recipient, Role, Tag, User, Webhook
from delivery.models import Run, RunTarget
from queues.models import QueueImport, Source
from reminders.models import Reminder
from tests.api.program import Program
from tests.api.things import Route, Things, routes
from tests.config.programs import PROJECT
from tests.factories import (
    AccountFactory,
    ApprovalFactory,
    DeliveryFactory,
    ImportFactory,
    ItemFactory,
    MediaFactory,
    QueueImportFactory,
    RecipientFactory,
    ReminderFactory,
    RunAccountFactory,
    RunFactory,
    RunTargetFactory,
    SourceFactory,
    TagFactory,
    WebhookFactory,
)

pytestmark = pytest.mark.django_db

DOCUMENT = PROJECT / "docs" / "people.md"
OF_DRAFTS = "Write, copy, archive and discard a draft"
HOLDERS = {
    Role.READ: ("owner", "staff", "mate", "sender", "writer", "reader"),
    Role.WRITE: ("owner", "staff", "mate", "sender", "writer"),
    Role.SEND: ("owner", "staff", "mate", "sender"),
    Role.MANAGE: ("owner", "staff", "mate"),
}
LOWER = {
    Role.READ: (),
    Role.WRITE: ("reader",),
    Role.SEND: ("reader", "writer"),
    Role.MANAGE: ("reader", "writer", "sender"),
}
OURS = (Account, Recipient, Tag, Import, Reminder, Run, RunTarget)
# Addresses with an id that belong to one person alone, or that need no login: other tests ask them.
OTHERS = {
    "api_keys:revoke",
    "mfa_edit_webauthn",
    "mfa_remove_webauthn",
    "notices:act",
    "notices:address",
    "notices:confirm",
    "notices:delete",
    "people:confirm_email",
    "people:join",
    "people:recover",
    "people:remove",
    "people:role",
    "people:withdraw",
    "notifications:read",
    "notifications:move",
    "calendar:feed",
    "unsubscribe",
    "hook",
}
NOT_LET_IN = {HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND, HTTPStatus.UNAUTHORIZED}
BODIES: Mapping[str, dict[str, str]] = {
    "recipients:consent": {"how": "They asked by phone."},
    "recipients:tag": {"do": "rename", "name": "Renamed"},
    "reminders:review": {"do": "schedule"},
    "webhooks:page": {"url": "https://example.com/new", "events": "run.finished"},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line of the table: an action, its role, its addresses and its routes of the API."""

    action: str
    role: Role
    pages: tuple[str, ...]
    routes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """One address to ask: a method, the name of the address, and a word in it."""

    method: str
    name: str
    word: str
    line: Line

    def __str__(self) -> str:
        return f"{self.method} {self.name} {self.word}".strip() + (" of a draft" * self.of_draft)

    @property
    def of_draft(self) -> bool:
        return self.line.action == OF_DRAFTS


@cache
def table() -> list[Line]:
    found = re.findall(
        r"^\| ([^|]+) \| (Read|Write|Send|Manage) \|([^|]*)\|([^|]*)\|$", DOCUMENT.read_text(), re.MULTILINE
    )
    return [
        Line(action=action, role=Role(role.lower()), pages=_coded(pages), routes=_coded(api))
        for action, role, pages, api in found
    ]


def _coded(cell: str) -> tuple[str, ...]:
    return tuple(re.findall(r"`([^`]+)`", cell))


def asks() -> list[Ask]:
    """Return every address of the table with each method that it is listed with."""
    found = []
    for line in table():
        for entry in line.pages:
            words = entry.split()
            methods = (words.pop(0),) if words[0].isupper() else ("GET", "POST")
            found += [
                Ask(method=each, name=words[0], word=" ".join(words[1:]), line=line) for each in methods
            ]
    return found


def names(resolver: URLResolver, space: str = "") -> Iterator[tuple[str, URLPattern]]:
    for entry in resolver.url_patterns:
        if isinstance(entry, URLResolver) and entry.namespace not in {"admin", "api"}:
            yield from names(entry, f"{space}{entry.namespace}:" if entry.namespace else space)
        elif isinstance(entry, URLPattern) and entry.name:
            yield space + entry.name, entry


class World:
    """One of everything of the owner, and the addresses that name it."""

    def __init__(self, owner: User) -> None:
        account = AccountFactory.create(owner=owner)
        recipient = RecipientFactory.create(owner=owner)
        self.draft = ReminderFactory.create(owner=owner, accounts=[account], recipients=[recipient])
        self.reminder = ReminderFactory.create(
            owner=owner,
            by_hand=True,
            around_the_clock=True,
            status=Reminder.Status.SCHEDULED,
            accounts=[account],
            recipients=[recipient],
        )
        run = RunFactory.create(reminder=self.reminder, unconfirmed=1)
        RunAccountFactory.create(run=run, account=account)
        webhook = WebhookFactory.create(owner=owner)
        media = MediaFactory.create(owner=owner)
        media.file.save("a.png", ContentFile(b"x"))
        self.target = RunTargetFactory.create(
            run=run, recipient=recipient, account=account, unconfirmed=True
        ).pk
        self.delivery = DeliveryFactory.create(webhook=webhook).pk
        item = ItemFactory.create(queue__owner=owner, target__recipient=recipient, target__run__pending=1)
        self.rows = {
            "approvals": ApprovalFactory.create(owner=owner).pk,
            "queues:item": item.pk,
            "queues:import": QueueImportFactory.create(queue=item.queue, done=True).pk,
            "queues": item.queue_id,
            "accounts": account.pk,
            "recipients:import": ImportFactory.create(owner=owner, status=Import.Status.DONE).pk,
            "recipients:tag": TagFactory.create(owner=owner).pk,
            "recipients": recipient.pk,
            "privacy": recipient.pk,
            "reminders:media": media.pk,
            "runs": run.pk,
            "sources": SourceFactory.create(queue__owner=owner, sheet=True).pk,
            "webhooks": webhook.pk,
        }

    def address(self, ask: Ask) -> str:
        values: dict[str, Any] = {"pk": self._row(ask)}
        more = {
            "action": ask.word,
            "trial": "none",
            "verb": ask.word or "test",
            "target": self.target,
            "delivery": self.delivery,
        }
        for names_ in ((), ("action",), ("trial",), ("target",), ("delivery",), ("verb",)):
            try:
                return reverse(ask.name, kwargs=values | {name: more[name] for name in names_})
            except NoReverseMatch:
                continue
        raise AssertionError(ask)

    def _row(self, ask: Ask) -> int:
        for start, row in self.rows.items():
            if ask.name.startswith(start):
                return row
        return (self.draft if ask.of_draft else self.reminder).pk


@pytest.fixture
def people(
    owner: User, mate: User, sender: User, writer: User, reader: User, stranger: User, staff: User
) -> Mapping[str, User]:
    given = (owner, mate, sender, writer, reader, stranger, staff)
    return {person.username: person for person in given}


@pytest.fixture
def clients(people: Mapping[str, User]) -> Mapping[str, Client]:
    found = {}
    for name, person in people.items():
        found[name] = Client()
        found[name].force_login(person)
    return found


def everything() -> list[object]:
    return [list(model._default_manager.order_by("pk").values()) for model in OURS]


def test_the_table_lists_every_address_that_names_a_row() -> None:
    listed = {ask.name for ask in asks()} | OTHERS
    there = {name for name, entry in names(get_resolver()) if entry.pattern.converters}
    there -= {"accounts:add"}  # which names a kind of account
    assert there - listed == set(), "docs/people.md has to say which role these need."
    assert listed - there == set()


def test_the_table_lists_every_route_that_changes_something() -> None:
    listed = {route for line in table() for route in line.routes} - {"GET"}
    assert listed == {route.name for route in routes() if route.method != "GET"}


def test_every_page_asks_for_its_role(
    people: Mapping[str, User],
    clients: Mapping[str, Client],
    owner: User,
    redis: Redis,
    capsys: pytest.CaptureFixture[str],
) -> None:
    asked: Counter[str] = Counter()
    wrong: list[str] = []
    for ask in asks():
        world = World(owner)
        address, before = world.address(ask), everything()
        refused = {
            "stranger": HTTPStatus.NOT_FOUND,
            **dict.fromkeys(LOWER[ask.line.role], HTTPStatus.FORBIDDEN),
        }
        for name, expected in refused.items():
            got = clients[name].generic(ask.method, address, **_form(ask)).status_code
            if got != HTTPStatus.METHOD_NOT_ALLOWED:
                asked[f"{name} refused"] += 1
                wrong += [f"{name}: {ask} answered {got}"] * (got != expected)
        wrong += [f"somebody changed rows by {ask}"] * (everything() != before)
        for name in HOLDERS[ask.line.role]:
            got = clients[name].generic(ask.method, address, **_form(ask)).status_code
            if got != HTTPStatus.METHOD_NOT_ALLOWED:
                asked[f"{name} let in"] += 1
                wrong += [f"{name}: {ask} answered {got}"] * (got in NOT_LET_IN and not _is_gone(ask, world))
        visitor = Client().generic(ask.method, address)
        if visitor.status_code != HTTPStatus.METHOD_NOT_ALLOWED:
            asked["visitor refused"] += 1
            wrong += [f"a visitor: {ask} answered {visitor.status_code}"] * (
                "/login/" not in visitor.get("Location", "")
            )
    with capsys.disabled():
        sys.stdout.write(
            f"\n{len(asks())} addresses and methods; {asked.total()} requests: {dict(sorted(asked.items()))}\n"
        )
    assert not wrong, "\n".join(wrong)


def _form(ask: Ask) -> dict[str, Any]:
    if ask.method == "GET" or ask.name not in BODIES:
        return {}
    pairs = "&".join(f"{name}={value}" for name, value in BODIES[ask.name].items())
    return {"data": pairs, "content_type": "application/x-www-form-urlencoded"}


def _is_gone(ask: Ask, world: World) -> bool:
    """Tell whether somebody who was let in before has deleted the row."""
    gone = {
        "reminders:discard": not Reminder.objects.filter(pk=world.draft.pk).exists(),
        "webhooks:delete": not Webhook.objects.filter(pk=world.rows["webhooks"]).exists(),
        "sources:delete": not Source.objects.filter(pk=world.rows["sources"]).exists(),
        "queues:import_discard": not QueueImport.objects.filter(pk=world.rows["queues:import"]).exists(),
        "recipients:import_discard": not Import.objects.filter(pk=world.rows["recipients:import"]).exists(),
    }
    return gone.get(ask.name, False)


def test_every_route_asks_for_its_role(
    people: Mapping[str, User], owner: User, redis: Redis, capsys: pytest.CaptureFixture[str]
) -> None:
    by_name = {route.name: route for route in routes()}
    programs = {name: Program(person) for name, person in people.items()}
    asked: Counter[str] = Counter()
    wrong: list[str] = []
    lines = [(line, by_name[name]) for line in table() for name in line.routes if name != "GET"]
    for line, route in lines:
        if route.path == "/media":
            continue  # it needs a file: tests/api/routes/test_media.py
        for name in LOWER[line.role]:
            got, before, after = _ask(programs[name], owner, line, route)
            asked[f"{name} refused"] += 1
            wrong += [f"{name}: {route.name} answered {got}"] * (
                got != HTTPStatus.FORBIDDEN or before != after
            )
        for name in HOLDERS[line.role]:
            got, _, _ = _ask(programs[name], owner, line, route)
            asked[f"{name} let in"] += 1
            wrong += [f"{name}: {route.name} answered {got}"] * (got in NOT_LET_IN)
    with capsys.disabled():
        sys.stdout.write(f"\n{len(lines)} routes; {asked.total()} requests: {dict(sorted(asked.items()))}\n")
    assert not wrong, "\n".join(wrong)


def _ask(program: Program, owner: User, line: Line, route: Route) -> tuple[int, list[object], list[object]]:
    things = Things(owner)
    status = Reminder.Status.DRAFT if line.action == OF_DRAFTS else Reminder.Status.SCHEDULED
    Reminder.objects.filter(pk=things.ids["reminders"]).update(status=status)
    before = everything()
    answer = program.ask(route.method, things.address(route), things.body(route))
    return answer.status_code, before, everything()


def test_lists_show_what_is_shared_to_the_team_and_nothing_to_strangers(
    people: Mapping[str, User], clients: Mapping[str, Client], owner: User, redis: Redis
) -> None:
    account = AccountFactory.create(owner=owner, name="Zebra crossing")
    recipient = RecipientFactory.create(owner=owner, name="Zebra crossing")
    TagFactory.create(owner=owner, name="Zebra crossing")
    reminder = ReminderFactory.create(
        owner=owner, name="Zebra crossing", accounts=[account], recipients=[recipient]
    )
    RunFactory.create(reminder=reminder)
    lists = ("accounts:list", "recipients:list", "recipients:tags", "reminders:list", "activity:list")
    for name in lists:
        for person, client in clients.items():
            shown = "Zebra crossing" in client.get(reverse(name)).content.decode()
            assert shown == (person != "stranger"), (name, person)
