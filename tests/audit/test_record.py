"""Tests of what is recorded of a change, and what is not."""

from datetime import timedelta
from typing import Any

import pytest
from django.core.management import call_command
from django.db import InternalError, ProgrammingError, connection, transaction
from django.test import Client
from django.utils import timezone

from accounts.models import Account, Limit, Recipient, TeamMate, User
from accounts.recipients import consent
from accounts.recipients.change import change
from audit import retention
from audit.commands import as_command
from audit.models import Entry, PersonalValues
from audit.origin import Door, Origin, coming_from
from audit.record import MASK, record, shown
from delivery import lifecycle
from delivery.limits.own import save_limits
from delivery.models import Run
from tests.factories import AccountFactory, EntryFactory, RecipientFactory, RunFactory, UserFactory

pytestmark = pytest.mark.django_db
REFUSED = (ProgrammingError, InternalError)


@pytest.fixture
def account(owner: User) -> Account:
    return AccountFactory.create(owner=owner)


def test_a_change_names_the_person_the_thing_its_owner_and_both_sides(account: Account, mate: User) -> None:
    with coming_from(Origin(door=Door.PAGE, address="192.0.2.7", person=mate)):
        save_limits(account, [Limit(account=account, action="message", per_day=20)], by=mate)
    entry = Entry.objects.get()
    assert (entry.actor, entry.actor_name, entry.owner) == (mate, "mate", account.owner)
    assert (entry.door, entry.address, entry.action) == ("page", "192.0.2.7", "account.limits")
    assert (entry.thing_type, entry.thing_id, entry.note) == ("account", account.pk, "message")
    assert (entry.before, entry.after) == ({"per_day": None}, {"per_day": 20})


def test_what_the_system_does_is_not_recorded(owner: User) -> None:
    run = RunFactory.create(reminder__owner=owner, pending=1)
    record("run.pause", run)
    assert not Entry.objects.exists()


def test_a_change_that_is_taken_back_leaves_no_entry(account: Account, owner: User) -> None:
    with transaction.atomic():
        record("account.paused", account, by=owner)
        transaction.set_rollback(True)
    assert not Entry.objects.exists()


def test_an_action_without_words_is_a_mistake(account: Account, owner: User) -> None:
    with pytest.raises(KeyError, match="audit/actions"):
        record("account.juggled", account, by=owner)


@pytest.mark.parametrize("name", ["password", "new_credentials", "api_key", "client_secret", "access_token"])
def test_secrets_are_masked(name: str) -> None:
    assert shown({name: "hunter2", "name": "Anna"}) == {name: MASK, "name": "Anna"}


def test_a_long_text_is_cut_and_anything_can_be_stored() -> None:
    found = shown(
        {"text": "x" * 5000, "at": timezone.now(), "days": timedelta(days=1), "who": User(username="a")}
    )
    assert found is not None
    assert len(found["text"]) == 2001
    assert found["who"] == "a"


def test_a_command_is_recorded_with_its_name_and_nothing_that_was_typed_behind_it(owner: User) -> None:
    with as_command(["manage.py", "stop_sending", "--owner", "owner", "--reason", "secret"]):
        call_command("stop_sending", owner="owner", reason="The database moves")
    entry = Entry.objects.get(action="sending.stopped")
    assert entry.door == "command"
    assert entry.via.startswith("manage.py stop_sending by ")
    assert (entry.actor, entry.note) == (None, "The database moves")


def test_what_was_typed_about_a_recipient_lies_apart(owner: User) -> None:
    recipient = RecipientFactory.create(owner=owner, name="Anna")
    change(recipient, name="Anna Berg", by=owner)
    consent.opt_out(recipient, how="Anna called", by=owner)
    for entry in Entry.objects.all():
        assert (entry.thing_type, entry.thing_id) == ("recipient", recipient.pk)
        assert "Anna" not in f"{entry.thing_name}{entry.before}{entry.after}{entry.note}"
    kept = PersonalValues.objects.get(entry__action="recipient.changed")
    assert (kept.before, kept.after) == ({"name": "Anna"}, {"name": "Anna Berg"})
    assert PersonalValues.objects.get(entry__action="recipient.out").note == "Anna called"


def test_what_was_typed_about_an_erased_recipient_goes_and_the_entry_stays(owner: User) -> None:
    recipient, other = RecipientFactory.create_batch(2, owner=owner, name="Anna")
    for each in (recipient, other):
        change(each, name="Anna Berg", by=owner)
    assert retention.forget_recipient(recipient.pk) == 1
    assert Entry.objects.filter(thing_id=recipient.pk).exists()
    assert [kept.recipient_id for kept in PersonalValues.objects.all()] == [other.pk]


def test_a_draft_that_saves_itself_leaves_one_entry_in_ten_minutes(account: Account, owner: User) -> None:
    for _ in range(3):
        record("reminder.changed", account, by=owner, quiet=timedelta(minutes=10))
    assert Entry.objects.count() == 1


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE audit_entry SET actor_name = 'nobody'",
        "DELETE FROM audit_entry",
        "UPDATE audit_personalvalues SET note = ''",
        "DELETE FROM audit_personalvalues",
    ],
)
def test_the_database_refuses_to_change_or_remove_entries(statement: str, owner: User) -> None:
    change(RecipientFactory.create(owner=owner), name="Another", by=owner)
    with pytest.raises(REFUSED, match="append-only"), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(statement)
    assert Entry.objects.count() == PersonalValues.objects.count() == 1


@pytest.mark.parametrize("way", ["retention", "erasure"])
def test_no_way_removes_a_recent_entry_or_changes_one(way: str) -> None:
    EntryFactory.create(at=timezone.now() - timedelta(days=29))
    for statement in ("DELETE FROM audit_entry", "UPDATE audit_entry SET note = 'x'"):
        with pytest.raises(REFUSED, match="append-only"), retention._way(way), connection.cursor() as cursor:
            cursor.execute(statement)


def test_the_tables_cannot_be_emptied() -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(
            "CREATE TRIGGER never_emptied BEFORE TRUNCATE ON audit_entry "
            "FOR EACH STATEMENT EXECUTE FUNCTION audit_append_only()"
        )
        with pytest.raises(REFUSED, match="append-only"), transaction.atomic():
            cursor.execute("TRUNCATE audit_entry")
        transaction.set_rollback(True)


def test_old_entries_go_only_by_their_own_setting(settings: Any) -> None:
    old = EntryFactory.create(at=timezone.now() - timedelta(days=400))
    new = EntryFactory.create()
    settings.AUDIT_KEEP_DAYS = 0
    assert list(retention.remove_old()) == []
    settings.AUDIT_KEEP_DAYS = 365
    assert retention.count_old() == 1
    assert list(retention.remove_old()) == [1]
    assert set(Entry.objects.all()) == {new}
    assert old.pk != new.pk


def test_a_log_in_a_failed_one_and_a_log_out_are_recorded(client: Client) -> None:
    person = UserFactory.create(username="anna", with_password=True)
    for name, password in (("anna", "wrong"), ("my-password-in-the-wrong-box", "wrong")):
        client.post("/login/", {"username": name, "password": password}, REMOTE_ADDR="192.0.2.9")
    client.post("/login/", {"username": "anna", "password": "a long way to the pace line"})
    client.post("/logout/")
    found = list(Entry.objects.order_by("id").values_list("action", "thing_id", "actor_name"))
    assert found == [
        ("person.login_failed", person.pk, ""),
        ("person.login_failed", None, ""),
        ("person.logged_in", person.pk, "anna"),
        ("person.logged_out", person.pk, "anna"),
    ]
    assert Entry.objects.earliest("id").address == "192.0.2.9"
    assert "wrong-box" not in str(list(Entry.objects.values()))


def test_people_and_team_mates_are_recorded_whoever_saves_them(owner: User, stranger: User) -> None:
    Entry.objects.all()
    with coming_from(Origin(door=Door.ADMIN, person=owner)):
        mate = TeamMate.objects.create(owner=owner, mate=stranger, role="read")
        mate.role = "send"
        mate.save()
        mate.delete()
        stranger.set_password("another long one")
        stranger.is_staff = True
        stranger.save()
        stranger.save(update_fields=["last_login"])
    found = {entry.action: entry for entry in Entry.objects.all()}
    assert set(found) == {"team.added", "team.changed", "team.removed", "person.changed"}
    assert found["team.changed"].before == {"role": "read"}
    assert found["person.changed"].after == {"password": MASK, "is_staff": True}


def test_a_pause_by_the_engine_leaves_nothing_and_one_by_a_person_does(account: Account, owner: User) -> None:
    lifecycle.stop_account(account, status="offline", reason="gone")
    assert not Entry.objects.exists()
    lifecycle.pause_account(Account.objects.get(pk=account.pk), by=owner)
    assert Entry.objects.get().action == "account.paused"
    assert not Run.objects.exists()
    assert not Recipient.objects.exists()
