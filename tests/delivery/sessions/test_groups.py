"""The groups of an account become recipients, and stay what they are."""

from datetime import timedelta
from uuid import uuid4

import pytest
from django.core.exceptions import PermissionDenied
from django.utils import timezone
from redis import Redis

from accounts.models import Account, AddressAlias, Contact, GroupSync, Recipient, User
from config.long_tasks import long_tasks
from delivery import audience
from delivery.engine import wakeups
from delivery.sessions import groups
from delivery.tasks import sync_groups
from reminders.audience import excluded
from reminders.conversations import replies
from reminders.readiness import problems
from sandbox.groups import group
from sandbox.process import SandboxProcess
from tests.delivery.service import serving
from tests.factories import AccountFactory, RecipientFactory, ReminderFactory
from tests.reminders.conversations.conversation import hear


@pytest.fixture
def account(owner: User, gateway: SandboxProcess, redis: Redis) -> Account:
    credentials = {"base_url": gateway.url, "account": f"sync-{uuid4().hex}", "token": "t"}
    return AccountFactory.create(owner=owner, credentials=credentials)


def synced(account: Account, by: User | None = None) -> GroupSync:
    started = groups.start(account, by=by)
    sync_groups(started.pk)
    started.refresh_from_db()
    return started


def names(account: Account) -> set[str]:
    found = Recipient.objects.filter(owner=account.owner, archived_at=None)
    return set(found.values_list("name", flat=True))


def count(account: Account, gateway: SandboxProcess, number: int) -> None:
    gateway.behave(account.credentials["account"], groups=number)


def test_every_group_becomes_a_recipient_of_the_owner(account: Account, gateway: SandboxProcess) -> None:
    count(account, gateway, 450)  # more than two pages
    done = synced(account, account.owner)
    assert (done.seen, done.added, done.renamed, done.left, done.error) == (450, 450, 0, 0, "")
    assert done.finished_at is not None
    one = Recipient.objects.get(owner=account.owner, name="Riverside choir")
    assert (one.kind, one.account, one.channel) == ("group", account, "whatsapp")


def test_doing_it_again_changes_nothing(account: Account, gateway: SandboxProcess) -> None:
    count(account, gateway, 12)
    synced(account)
    before = list(Recipient.objects.order_by("pk").values())
    again = synced(account)
    assert (again.seen, again.added, again.renamed, again.left) == (12, 0, 0, 0)
    assert list(Recipient.objects.order_by("pk").values()) == before


def test_an_account_is_known_to_be_a_member_of_each_group_until_it_leaves(
    account: Account, gateway: SandboxProcess
) -> None:
    count(account, gateway, 12)
    synced(account)
    members = Contact.objects.filter(account=account, member_at__isnull=False)
    assert members.count() == 12
    assert not Contact.objects.filter(talked_at__isnull=False).exists()
    count(account, gateway, 10)
    synced(account)
    assert members.count() == 10


def test_a_group_that_was_renamed_gets_its_new_name_and_keeps_its_past(
    account: Account, gateway: SandboxProcess
) -> None:
    count(account, gateway, 3)
    synced(account)
    choir = Recipient.objects.get(name="Riverside choir")
    Recipient.objects.filter(pk=choir.pk).update(name="Old choir", opted_out_at=timezone.now())
    assert synced(account).renamed == 1
    choir.refresh_from_db()
    assert choir.name == "Riverside choir"
    assert choir.opted_out_at is not None


def test_a_group_that_was_left_is_archived_and_comes_back(account: Account, gateway: SandboxProcess) -> None:
    count(account, gateway, 3)
    synced(account)
    count(account, gateway, 2)
    assert synced(account).left == 1
    gone = Recipient.objects.get(name=group("any", 2).name)
    assert (gone.archived_at is None, gone.left_at is None) == (False, False)
    count(account, gateway, 3)
    synced(account)
    gone.refresh_from_db()
    assert (gone.archived_at, gone.left_at) == (None, None)


def test_what_a_person_archived_stays_archived(account: Account, gateway: SandboxProcess) -> None:
    count(account, gateway, 2)
    synced(account)
    Recipient.objects.filter(name="Riverside choir").update(archived_at=timezone.now())
    synced(account)
    assert "Riverside choir" not in names(account)


def test_a_service_that_lists_nothing_archives_nothing(account: Account, gateway: SandboxProcess) -> None:
    count(account, gateway, 5)
    synced(account)
    count(account, gateway, 0)
    done = synced(account)
    assert done.left == 0
    assert done.error.startswith("The service returned no groups, but 5 are known.")
    assert len(names(account)) == 5


def test_people_and_what_belongs_to_others_stay_as_they_are(
    account: Account, stranger: User, gateway: SandboxProcess
) -> None:
    count(account, gateway, 1)
    person = RecipientFactory.create(owner=account.owner)
    theirs = RecipientFactory.create(owner=stranger, group=True)
    synced(account)
    for kept in (person, theirs):
        kept.refresh_from_db()
        assert kept.archived_at is None


def test_a_group_with_two_of_our_accounts_is_reached_by_either(
    account: Account, gateway: SandboxProcess
) -> None:
    count(account, gateway, 1)
    other = AccountFactory.create(owner=account.owner)
    address = group(account.credentials["account"], 0).id
    shared = RecipientFactory.create(owner=account.owner, kind="group", address=address, account=other)
    synced(account)
    shared.refresh_from_db()
    assert shared.account is None


def test_only_one_is_under_way_at_a_time(account: Account) -> None:
    assert groups.start(account, by=None) == groups.start(account, by=None)


def test_one_whose_worker_died_makes_way(account: Account, gateway: SandboxProcess) -> None:
    dead = groups.start(account, by=None)
    GroupSync.objects.update(progress_at=timezone.now() - timedelta(minutes=4))
    assert synced(account).error == ""
    dead.refresh_from_db()
    assert "Start it again" in dead.error


def test_a_service_that_is_away_is_said_in_a_sentence(account: Account) -> None:
    account.credentials = {**account.credentials, "base_url": "http://127.0.0.1:9"}
    account.save()
    done = synced(account)
    assert "connection refused, " in done.error
    assert done.finished_at is not None


def test_a_task_that_comes_twice_finds_its_work_done(account: Account, gateway: SandboxProcess) -> None:
    done = synced(account)
    sync_groups(done.pk)
    assert GroupSync.objects.get(pk=done.pk).finished_at == done.finished_at


def test_a_reader_and_a_stranger_may_not_start_one(account: Account, reader: User, stranger: User) -> None:
    for person in (reader, stranger):
        with pytest.raises(PermissionDenied):
            groups.start(account, by=person)


def test_the_members_of_groups_tell_who_is_behind_hidden_addresses(owner: User, redis: Redis) -> None:
    anna = RecipientFactory.create(owner=owner, address="+60123456789")
    with serving() as service:
        credentials = {"base_url": service.url, "api_key": "k", "instance": "north"}
        account = AccountFactory.create(owner=owner, transport="evolution", credentials=credentials)
        hear(account, "STOP", chat="77@lid")  # from nobody yet
        members = [
            {"id": "77@lid", "phoneNumber": "60123456789@s.whatsapp.net"},
            {"id": "78@lid"},
            {"id": "79@lid", "phoneNumber": "60129999999@s.whatsapp.net"},  # no recipient
        ]
        listed = [{"id": "120363000000000001@g.us", "subject": "Choir", "participants": members}]
        service.answers["GET", "/group/fetchAllGroups/north"] = 200, listed
        assert synced(account).error == ""
    alias = AddressAlias.objects.get(account=account)
    assert (alias.alias, alias.address, alias.source) == ("77@lid", anna.address, "group")
    replies.sweep()
    anna.refresh_from_db()
    assert anna.opted_out_at is not None


def test_encrypted_rooms_are_left_out_before_a_run_and_spaces_are_none(owner: User, redis: Redis) -> None:
    api = "/_matrix/client/v3"
    with serving() as service:
        credentials = {"base_url": service.url, "access_token": "a-token"}
        account = AccountFactory.create(
            owner=owner, channel="matrix", transport="matrix", credentials=credentials
        )
        rooms = ["!open:m.example", "!secret:m.example", "!space:m.example"]
        service.missing = 404, {"errcode": "M_NOT_FOUND", "error": "Event not found."}
        service.answers["GET", f"{api}/joined_rooms"] = 200, {"joined_rooms": rooms}
        encryption = {"algorithm": "m.megolm.v1.aes-sha2"}
        of_secret = f"{api}/rooms/%21secret%3Am.example/state"
        service.answers["GET", f"{of_secret}/m.room.encryption"] = 200, encryption
        of_space = f"{api}/rooms/%21space%3Am.example/state"
        service.answers["GET", f"{of_space}/m.room.create"] = 200, {"type": "m.space"}
        assert synced(account).error == ""
    found = Recipient.objects.filter(owner=owner)
    assert dict(found.values_list("address", "problem")) == {
        "!open:m.example": "",
        "!secret:m.example": "encrypted",
    }
    reminder = ReminderFactory.create(
        owner=owner, channel="matrix", accounts=[account], recipients=list(found), around_the_clock=True
    )
    reached = audience.count(reminder.pk, [account.pk])
    assert (reached.kinds, reached.refused) == ({"room": 1}, {"encrypted": 1})
    assert [vars(row)["refused"] for row in excluded(reminder, [account.pk])] == ["encrypted"]
    reminder.recipients.set(found.exclude(problem=""))
    [problem] = [each for each in problems(reminder) if each.step == "recipients"]
    assert "encrypted" in problem.sentence


def test_syncs_of_one_owner_leave_room_for_others(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[tuple[object, ...]] = []
    monkeypatch.setattr(wakeups, "send_on_commit", lambda *what, **_: sent.append(what))
    made = groups.start(account, by=None)
    for _ in range(long_tasks().each):
        assert long_tasks().take(account.owner_id) is None
    other = AccountFactory.create(transport="sandbox", credentials=account.credentials)
    others = groups.start(other, by=None)
    sent.clear()
    groups.run_in_turn(made.pk)
    groups.run_in_turn(others.pk)
    for _ in range(long_tasks().each):
        long_tasks().give_back(account.owner_id)
    made.refresh_from_db()
    others.refresh_from_db()
    assert (made.finished_at, sent) == (None, [(groups.TASK, made.pk)])
    assert others.finished_at is not None
