"""The rows that each kind of person may see and change, for every model."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from django.apps import apps
from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import PermissionDenied
from django.db.models import Model
from hypothesis import given
from hypothesis import strategies as st

from accounts.models import (
    Account,
    AddressAlias,
    Approval,
    ApprovalNumber,
    ConsentChange,
    Contact,
    Delivery,
    GroupSync,
    HealthChange,
    Import,
    ImportRow,
    Limit,
    OwnAddress,
    OwnLimits,
    Recipient,
    RefusedReports,
    ResultFeed,
    Role,
    SenderDomain,
    SendingStop,
    Tag,
    TeamMate,
    TestMessage,
    User,
    Webhook,
)
from accounts.roles import (
    NEVER_SHARED,
    may_touch,
    owner_path,
    owners_for,
    require_touch,
    rights_on,
    touchable,
    visible,
)
from activity.models import AccountDay, Attempt, Inbound, Notification, NotificationOutbox, PushSubscription
from api.models import ApiKey, StoredAnswer
from audit.models import Entry, PersonalValues
from delivery.models import MediaHandle, Run, RunAccount, RunTarget, TargetContent
from notices.models import AccountEscalation, Escalation, Follow, Notice, NoticeAddress, Preferences
from reminders.models import FollowUp, FollowUpStep, Media, Part, Reminder, ReminderAccount
from tests import factories as f

APPS = ("accounts", "reminders", "delivery", "activity", "audit", "api", "notices")
# People are nobody's: superusers alone manage them, in the admin.
OWNERLESS = {User}

ROW_OF: Mapping[type[Model], Callable[[User], Any]] = {
    Account: lambda owner: f.AccountFactory.create(owner=owner),
    AddressAlias: lambda owner: f.AddressAliasFactory.create(account__owner=owner),
    RefusedReports: lambda owner: f.RefusedReportsFactory.create(account__owner=owner),
    Approval: lambda owner: f.ApprovalFactory.create(owner=owner),
    ApprovalNumber: lambda owner: f.ApprovalNumberFactory.create(owner=owner),
    OwnLimits: lambda owner: f.OwnLimitsFactory.create(account__owner=owner),
    SenderDomain: lambda owner: f.SenderDomainFactory.create(account__owner=owner),
    ConsentChange: lambda owner: f.ConsentChangeFactory.create(recipient__owner=owner),
    Contact: lambda owner: f.ContactFactory.create(account__owner=owner),
    HealthChange: lambda owner: f.HealthChangeFactory.create(account__owner=owner),
    AccountDay: lambda owner: f.AccountDayFactory.create(account__owner=owner),
    GroupSync: lambda owner: f.GroupSyncFactory.create(account__owner=owner),
    Import: lambda owner: f.ImportFactory.create(owner=owner),
    ImportRow: lambda owner: f.ImportRowFactory.create(job__owner=owner),
    Limit: lambda owner: f.LimitFactory.create(account__owner=owner),
    Recipient: lambda owner: f.RecipientFactory.create(owner=owner),
    SendingStop: lambda owner: f.SendingStopFactory.create(owner=owner),
    Tag: lambda owner: f.TagFactory.create(owner=owner),
    TeamMate: lambda owner: f.TeamMateFactory.create(owner=owner),
    Attempt: lambda owner: f.AttemptFactory.create(target__run__reminder__owner=owner),
    OwnAddress: lambda owner: f.OwnAddressFactory.create(account__owner=owner, person=owner),
    TestMessage: lambda owner: f.TestMessageFactory.create(account__owner=owner),
    Inbound: lambda owner: f.InboundFactory.create(account__owner=owner),
    Notification: lambda owner: f.NotificationFactory.create(owner=owner),
    PushSubscription: lambda owner: f.PushSubscriptionFactory.create(user=owner),
    MediaHandle: lambda owner: f.MediaHandleFactory.create(run__reminder__owner=owner),
    Run: lambda owner: f.RunFactory.create(reminder__owner=owner),
    RunAccount: lambda owner: f.RunAccountFactory.create(run__reminder__owner=owner),
    RunTarget: lambda owner: f.RunTargetFactory.create(run__reminder__owner=owner),
    TargetContent: lambda owner: f.TargetContentFactory.create(target__run__reminder__owner=owner),
    FollowUp: lambda owner: f.FollowUpFactory.create(target__run__reminder__owner=owner),
    FollowUpStep: lambda owner: f.FollowUpStepFactory.create(reminder__owner=owner),
    Media: lambda owner: f.MediaFactory.create(owner=owner),
    Part: lambda owner: f.PartFactory.create(reminder__owner=owner),
    Reminder: lambda owner: f.ReminderFactory.create(owner=owner),
    Webhook: lambda owner: f.WebhookFactory.create(owner=owner),
    Delivery: lambda owner: f.DeliveryFactory.create(webhook__owner=owner),
    ResultFeed: lambda owner: f.ResultFeedFactory.create(webhook__owner=owner),
    Entry: lambda owner: f.EntryFactory.create(owner=owner),
    PersonalValues: lambda owner: f.PersonalValuesFactory.create(entry__owner=owner),
    ApiKey: lambda owner: f.ApiKeyFactory.create(person=owner),
    NotificationOutbox: lambda owner: f.NotificationOutboxFactory.create(notification__owner=owner),
    AccountEscalation: lambda owner: f.AccountEscalationFactory.create(account__owner=owner),
    Escalation: lambda owner: f.EscalationFactory.create(run__reminder__owner=owner),
    Follow: lambda owner: f.FollowFactory.create(person=owner),
    Notice: lambda owner: f.NoticeFactory.create(address__person=owner),
    NoticeAddress: lambda owner: f.NoticeAddressFactory.create(person=owner),
    Preferences: lambda owner: f.PreferencesFactory.create(person=owner),
    StoredAnswer: lambda owner: f.StoredAnswerFactory.create(key__person=owner),
    ReminderAccount: lambda owner: f.ReminderAccountFactory.create(reminder__owner=owner),
}

People = Mapping[str, User | AnonymousUser]


# The people whom each role includes, beside the owner and staff.
HOLDERS = {
    Role.READ: {"reader", "writer", "sender", "mate"},
    Role.WRITE: {"writer", "sender", "mate"},
    Role.SEND: {"sender", "mate"},
    Role.MANAGE: {"mate"},
}


@pytest.fixture
def people(
    owner: User, mate: User, sender: User, writer: User, reader: User, stranger: User, staff: User
) -> People:
    return {
        "owner": owner,
        "mate": mate,
        "sender": sender,
        "writer": writer,
        "reader": reader,
        "stranger": stranger,
        "staff": staff,
        "a mate who left": f.TeamMateFactory.create(owner=owner, manage=True, mate__inactive=True).mate,
        "a staff member who left": f.StaffFactory.create(inactive=True),
        "nobody": AnonymousUser(),
    }


def owned_models() -> list[type[Model]]:
    models = (model for label in APPS for model in apps.get_app_config(label).get_models())
    return [model for model in models if model not in OWNERLESS]


def is_shared(model: type[Model]) -> bool:
    return model._meta.label not in NEVER_SHARED


every_model = pytest.mark.parametrize("model", ROW_OF, ids=lambda model: model._meta.label)
every_shared_model = pytest.mark.parametrize(
    "model", [*filter(is_shared, ROW_OF)], ids=lambda model: model._meta.label
)


@pytest.mark.parametrize("model", owned_models(), ids=lambda model: model._meta.label)
def test_each_model_has_a_path_to_its_owner_and_a_row_to_test_it_with(model: type[Model]) -> None:
    step: type[Model] = model
    for name in owner_path(model).split("__"):
        related = step._meta.get_field(name).related_model
        assert isinstance(related, type)
        step = related
    assert step is User
    assert model in ROW_OF


@every_model
def test_a_row_is_seen_by_its_owner_the_team_and_staff_alone(
    model: type[Model], people: People, owner: User
) -> None:
    row = ROW_OF[model](owner)
    seen_by = {
        name for name, person in people.items() if row in visible(model._default_manager.all(), person)
    }
    assert seen_by == {"owner", "staff"} | (HOLDERS[Role.READ] if is_shared(model) else set())


@pytest.mark.parametrize("role", Role)
@every_model
def test_a_role_is_held_by_the_owner_staff_and_the_mates_whose_role_includes_it(
    model: type[Model], role: Role, people: People, owner: User
) -> None:
    row = ROW_OF[model](owner)
    rows = model._default_manager.all()
    touched_by = {name for name, person in people.items() if row in touchable(rows, person, role)}
    assert touched_by == {"owner", "staff"} | (HOLDERS[role] if is_shared(model) else set())
    assert touched_by == {name for name, person in people.items() if may_touch(row, person, role)}


@every_shared_model
def test_the_rights_that_a_page_shows_are_those_that_an_action_asks_for(
    model: type[Model], people: People, owner: User
) -> None:
    row = ROW_OF[model](owner)
    for person in people.values():
        rights = rights_on(row, person)
        asked = {role: may_touch(row, person, role) for role in (Role.WRITE, Role.SEND, Role.MANAGE)}
        assert [rights.write, rights.send, rights.manage] == [*asked.values()]


@every_shared_model
def test_who_may_not_touch_a_row_is_refused_with_a_sentence(
    model: type[Model], people: People, owner: User
) -> None:
    row = ROW_OF[model](owner)
    for role in (Role.WRITE, Role.SEND, Role.MANAGE):
        for name in people.keys() & {"owner", "staff", *HOLDERS[role]}:
            require_touch(row, people[name], role)
        for name in people.keys() - {"owner", "staff", *HOLDERS[role]}:
            with pytest.raises(PermissionDenied, match=f"You may not change .* Ask its owner .*{role.label}"):
                require_touch(row, people[name], role)


@given(role=st.sampled_from(Role), other=st.sampled_from(Role))
def test_roles_include_each_other_in_one_order(role: Role, other: Role) -> None:
    assert role in role.holders
    assert Role.MANAGE in role.holders
    assert (other in role.holders) or (role in other.holders)
    assert set(other.holders) <= set(role.holders) if other in role.holders else True


def test_the_release_before_never_gives_more_than_the_role(owner: User, db: None) -> None:
    shares = [f.TeamMateFactory.create(owner=owner, role=role) for role in Role]
    assert [share.access for share in shares] == ["read", "read", "read", "operate"]
    share = shares[-1]
    share.role = Role.SEND
    share.save(update_fields=["role"])
    share.refresh_from_db()
    assert share.access == "read"


def test_a_mate_cannot_raise_their_own_role(owner: User, mate: User) -> None:
    with pytest.raises(PermissionDenied):
        require_touch(TeamMate.objects.get(owner=owner, mate=mate), mate, Role.WRITE)


def test_people_see_and_touch_themselves_alone(owner: User, mate: User, stranger: User) -> None:
    assert list(visible(User.objects.all(), mate)) == [mate]
    assert list(touchable(User.objects.all(), stranger, Role.MANAGE)) == [stranger]


@pytest.mark.parametrize("role", Role)
def test_things_are_added_for_owners_who_gave_the_role(role: Role, people: People, owner: User) -> None:
    added_by = {
        name
        for name, person in people.items()
        if isinstance(person, User) and person.is_active and owner in owners_for(person, role)
    }
    assert added_by == {"owner", "staff", *HOLDERS[role]}


def test_sharing_goes_one_way(owner: User, mate: User) -> None:
    account = f.AccountFactory.create(owner=mate)
    assert account not in visible(Account.objects.all(), owner)


def test_a_mate_of_two_owners_sees_both_and_each_row_once(owner: User, mate: User) -> None:
    other = f.TeamMateFactory.create(mate=mate).owner
    rows = [f.AccountFactory.create(owner=person) for person in (owner, other, mate)]
    assert sorted(visible(Account.objects.all(), mate).values_list("pk", flat=True)) == [
        row.pk for row in rows
    ]
    assert other.accounts.get() not in touchable(Account.objects.all(), mate, Role.WRITE)


def test_what_was_filtered_before_stays_filtered(owner: User, staff: User) -> None:
    f.AccountFactory.create(owner=owner, archived=True)
    for person in (owner, staff):
        assert not visible(Account.objects.filter(archived_at=None), person).exists()
