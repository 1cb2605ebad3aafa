"""No door changes anything without an entry: every route of the API, every address, every page of the admin."""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from django.apps import apps
from django.contrib import admin
from django.db.models import Model
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver, reverse

from accounts.models import User
from audit.models import Entry
from delivery.run_actions import ACTIONS, BATCHES, TARGET_ACTIONS
from tests.api.program import Program
from tests.api.things import Route, Things, routes
from tests.factories import FACTORY_OF, UserFactory

pytestmark = pytest.mark.django_db

# Rows that are no change of a person: logs, the engine's own notes, and what is read or pointed to.
NOT_JUDGED = {
    "activity.Notification",
    "activity.NotificationOutbox",
    "notices.AccountEscalation",
    "notices.Escalation",
    "notices.Notice",
    "accounts.Delivery",
    "accounts.ResultFeed",
    "api.StoredAnswer",
    "audit.Entry",
    "audit.PersonalValues",
    "accounts.SenderDomain",  # what was read from the DNS
}
# Columns that the engine, a request or a look-up writes.
UNJUDGED_COLUMNS = {"last_login", "used_at", "used_from", "wake_at", "read_at", "domain_checked_at"}
OURS = ("accounts", "activity", "api", "delivery", "notices", "reminders")
WRITES = [route for route in routes() if route.method != "GET"]


def rows() -> dict[str, list[Any]]:
    """Return everything that a person may change."""
    found = {}
    for label in OURS:
        for model in apps.get_app_config(label).get_models():
            if model._meta.label not in NOT_JUDGED:
                names = [field.attname for field in model._meta.concrete_fields]
                kept = [name for name in names if name not in UNJUDGED_COLUMNS]
                found[model._meta.label] = list(model._base_manager.order_by("pk").values_list(*kept))
    return found


def differing(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    return [label for label, value in after.items() if before[label] != value]


@pytest.mark.parametrize("route", WRITES, ids=lambda route: route.name)
@pytest.mark.usefixtures("redis")
def test_a_route_that_changes_something_leaves_an_entry_with_its_key(route: Route, owner: User) -> None:
    things, program = Things(owner), Program(owner)
    before, known = rows(), set(Entry.objects.values_list("pk", flat=True))
    answer = program.ask(route.method, things.address(route), things.body(route))
    new = Entry.objects.exclude(pk__in=known)
    changed = differing(before, rows())
    assert bool(new) >= bool(changed), f"{changed} changed without an entry: {answer.content!r}"
    for entry in new:
        assert (entry.door, entry.actor) == ("key", owner)
        assert entry.via


def addresses(
    resolver: URLResolver, space: str = "", above: frozenset[str] = frozenset()
) -> Iterator[tuple[str, tuple[URLPattern, frozenset[str]]]]:
    """Yield every named address of our pages, with its pattern and the names of all its arguments."""
    for each in resolver.url_patterns:
        pattern = each.pattern
        names = above | {*pattern.converters, *pattern.regex.groupindex}
        if isinstance(each, URLResolver):
            inner = ":".join(filter(None, (space, each.namespace)))
            if each.namespace != "admin" and not (each.app_name or "").startswith(("ninja", "api-")):
                yield from addresses(each, inner, names)
        elif each.name:
            yield ":".join(filter(None, (space, each.name))), (each, names)


NAMED = dict(addresses(get_resolver()))
TEXTS = {"how": "They asked.", "name": "New", "into": "", "do": "save", "confirmed": "1", "reason": "A test"}


def address_of(name: str, things: Things) -> str:
    """Return an address that names rows of the owner."""
    pattern, arguments = NAMED[name]
    space, _, last = name.partition(":")
    nouns = {"accounts": "accounts", "recipients": "recipients", "reminders": "reminders", "runs": "runs"}
    noun = {"tag": "tags", "tag_all": "tags", "media": "media"}.get(last, nouns.get(space, space))
    known = {
        "pk": things.ids.get(noun, 0),
        "target": things.ids["target"],
        "delivery": things.ids["delivery"],
    }
    known |= {"action": "opt-out", "verb": "off", "channel": "whatsapp", "kind": "sandbox", "trial": "x"}
    known |= {"token": "x", "public_id": "00000000-0000-0000-0000-000000000000", "key": "x"}
    return reverse(
        name, kwargs={each: known.get(each, "x") for each in arguments} | (pattern.default_args or {})
    )


@pytest.mark.parametrize("name", sorted(NAMED))
@pytest.mark.usefixtures("redis")
def test_an_address_that_changes_something_leaves_an_entry(name: str, owner: User, client: Client) -> None:
    things = Things(owner)
    client.force_login(owner)
    before, known = rows(), set(Entry.objects.values_list("pk", flat=True))
    answer = client.post(address_of(name, things), TEXTS)
    changed = differing(before, rows())
    new = Entry.objects.exclude(pk__in=known).exists()
    assert new >= bool(changed), f"{name} ({answer.status_code}) changed {changed} without an entry"


# Of these the walk above must have changed something: it is no walk past closed doors.
SURE = (
    *("accounts:pause", "recipients:archive", "recipients:consent", "recipients:tag_all", "calendar:renew"),
    *("reminders:duplicate", "runs:pause", "runs:cancel", "runs:confirm"),
)


@pytest.mark.parametrize("name", SURE)
@pytest.mark.usefixtures("redis")
def test_these_addresses_do_change_something(name: str, owner: User, client: Client) -> None:
    things = Things(owner)
    client.force_login(owner)
    known = set(Entry.objects.values_list("pk", flat=True))
    client.post(address_of(name, things), TEXTS | {"do": "add"} if name == "recipients:tag_all" else TEXTS)
    assert Entry.objects.exclude(pk__in=known).exists()


@pytest.mark.parametrize("verb", [*ACTIONS, *BATCHES, *TARGET_ACTIONS])
def test_every_action_on_a_run_has_words(verb: str) -> None:
    entry = Entry(action=f"run.{verb}")
    assert entry.words != entry.action


MODELS: list[type[Model]] = [
    model for model in admin.site._registry if model._meta.app_label in OURS and model in FACTORY_OF
]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model._meta.label)
def test_deleting_in_the_admin_leaves_an_entry(model: type[Model], client: Client) -> None:
    client.force_login(UserFactory.create(superuser=True))
    row = FACTORY_OF[model].create()
    known = set(Entry.objects.values_list("pk", flat=True))
    where = reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_delete", args=[row.pk])
    client.post(where, {"post": "yes"})
    if not model._base_manager.filter(pk=row.pk).exists():
        assert Entry.objects.exclude(pk__in=known).filter(door="admin").exists()


def test_saving_in_the_admin_leaves_both_sides(client: Client) -> None:
    boss = UserFactory.create(superuser=True)
    client.force_login(boss)
    tag = FACTORY_OF[apps.get_model("accounts.Tag")].create(name="Old")
    client.post(reverse("admin:accounts_tag_change", args=[tag.pk]), {"name": "New"})
    entry = Entry.objects.get(action="admin.changed")
    assert (entry.before, entry.after) == ({"name": "Old"}, {"name": "New"})
    assert (entry.door, entry.actor, entry.thing_id, entry.owner_id) == ("admin", boss, tag.pk, tag.owner_id)
