"""Accounts, limits, people and recipients that the database itself refuses."""

from typing import Any

import pytest
from django.db.models import F, Model
from django.utils import timezone

from accounts.models import Account, Approval
from tests.factories import (
    AccountFactory,
    AddressAliasFactory,
    ApprovalFactory,
    ApprovalNumberFactory,
    ConsentChangeFactory,
    ContactFactory,
    DeliveryFactory,
    GroupSyncFactory,
    HealthChangeFactory,
    ImportFactory,
    ImportRowFactory,
    LimitFactory,
    OwnAddressFactory,
    OwnLimitsFactory,
    RecipientFactory,
    ResultFeedFactory,
    SenderDomainFactory,
    SendingStopFactory,
    TagFactory,
    TeamMateFactory,
    TestMessageFactory,
    UserFactory,
    WebhookFactory,
)
from tests.refusals import (
    Attempt,
    Refusal,
    as_parameters,
    changed,
    check_below_zero,
    declared,
    doubled,
    numbers_from_zero,
)

pytestmark = pytest.mark.django_db

WARMING_UP = {"warming_up": True}
MAILBOX = {"mailbox": True}
BATCHES = {"batches": True}
GAP = {"gap_min": 30, "gap_max": 60}


def two_accounts_on_one_session() -> Attempt:
    AccountFactory.create(session_key="a" * 64)
    AccountFactory.create(session_key="a" * 64, archived=True)  # one that is put away uses nothing
    other = AccountFactory.create()
    return lambda: Account.objects.filter(pk=other.pk).update(session_key="a" * 64)


def approved_by_who_asked() -> Attempt:
    asked = ApprovalFactory.create(approved=True, asked_by=UserFactory.create())
    return lambda: Approval.objects.filter(pk=asked.pk).update(decided_by=F("asked_by"))


REFUSALS = [
    changed(
        "a webhook for an unknown event", "webhook_events_known", WebhookFactory, events=["run.exploded"]
    ),
    changed(
        "an event in an unknown state",
        "delivery_state_known",
        DeliveryFactory,
        {"delivered": True},
        state="lost",
    ),
    changed("an event that ended and still waits", "delivery_ends_once", DeliveryFactory, state="delivered"),
    doubled("one run followed twice for a webhook", "feed_once", ResultFeedFactory, "webhook", "run"),
    # People
    doubled("two people with one user name", "accounts_user_username_key", UserFactory, "username"),
    doubled("a team mate twice in one team", "teammate_once", TeamMateFactory, "owner", "mate"),
    changed("a team mate of oneself", "teammate_not_self", TeamMateFactory, mate=F("owner")),
    changed("a team mate with an unknown role", "teammate_role_known", TeamMateFactory, role="rule"),
    changed("a team mate with an unknown access", "teammate_access_known", TeamMateFactory, access="rule"),
    doubled("two open stops of one owner", "sending_stop_one_at_a_time", SendingStopFactory, "owner"),
    # Approvals
    changed("a number of no recipients", "approval_number_positive", ApprovalNumberFactory, above=0),
    doubled(
        "two numbers of one owner", "accounts_approvalnumber_owner_id_key", ApprovalNumberFactory, "owner"
    ),
    changed("a request of an unknown kind", "approval_kind_known", ApprovalFactory, kind="wish"),
    changed("a request in an unknown state", "approval_state_known", ApprovalFactory, state="asleep"),
    changed("a decision at no time", "approval_decided_at_a_time", ApprovalFactory, state="approved"),
    Refusal(
        sentence="a request that is approved by who asked",
        constraint="approval_by_a_second_person",
        prepare=approved_by_who_asked,
    ),
    changed(
        "a refusal without a reason",
        "approval_refused_with_a_reason",
        ApprovalFactory,
        {"approved": True},
        state="refused",
    ),
    doubled(
        "two requests that wait about one reminder",
        "approval_one_waits",
        ApprovalFactory,
        "reminder",
        of_reminder=True,
    ),
    # Accounts
    doubled(
        "two accounts of one owner and channel with one name",
        "account_name_once",
        AccountFactory,
        "owner",
        "channel",
        "name",
    ),
    Refusal(
        sentence="two accounts, also of two owners, on one session of a service",
        constraint="account_session_once",
        prepare=two_accounts_on_one_session,
    ),
    doubled("an alias that is learnt twice", "address_alias_once", AddressAliasFactory, "account", "alias"),
    doubled("a contact twice", "contact_once", ContactFactory, "recipient", "account"),
    doubled(
        "two results for the domain of one account",
        "accounts_senderdomain_account_id_key",
        SenderDomainFactory,
        "account",
    ),
    doubled(
        "two answers about the own limits of one account's service",
        "accounts_ownlimits_account_id_key",
        OwnLimitsFactory,
        "account",
    ),
    changed("an account with an unknown status", "account_status_known", AccountFactory, status="asleep"),
    changed("an account on an unknown channel", "account_channel_known", AccountFactory, channel="pigeon"),
    changed(
        "an account faster than its limits",
        "account_never_faster_than_its_limits",
        AccountFactory,
        slow_factor=0.99,
    ),
    doubled("an own address twice", "own_address_once", OwnAddressFactory, "account", "person", "address"),
    changed("a test of an unknown kind", "test_message_kind_known", TestMessageFactory, kind="joke"),
    changed("an account with unknown trouble", "account_trouble_known", AccountFactory, trouble_kind="mood"),
    changed(
        "an account with no group in flight",
        "account_group_concurrency_range",
        AccountFactory,
        group_concurrency=0,
    ),
    changed(
        "an account with 65 groups in flight",
        "account_group_concurrency_range",
        AccountFactory,
        group_concurrency=65,
    ),
    changed("warm-up with a start alone", "account_warmup_whole", AccountFactory, warmup_start=20),
    changed("warm-up without a step", "account_warmup_whole", AccountFactory, WARMING_UP, warmup_step=None),
    changed(
        "warm-up without a ceiling", "account_warmup_whole", AccountFactory, WARMING_UP, warmup_ceiling=None
    ),
    changed(
        "warm-up that starts at none", "account_warmup_whole", AccountFactory, WARMING_UP, warmup_start=0
    ),
    changed("warm-up that never grows", "account_warmup_whole", AccountFactory, WARMING_UP, warmup_step=0),
    changed(
        "warm-up that starts above its ceiling",
        "account_warmup_whole",
        AccountFactory,
        WARMING_UP,
        warmup_ceiling=19,
    ),
    changed("working hours without an end", "account_working_hours_whole", AccountFactory, work_start_hour=9),
    changed(
        "working hours that end before they begin",
        "account_working_hours_whole",
        AccountFactory,
        work_start_hour=17,
        work_end_hour=9,
    ),
    changed("no working day", "account_working_days", AccountFactory, work_days=0),
    changed("an eighth working day", "account_working_days", AccountFactory, work_days=128),
    # Limits
    doubled(
        "two limits of one account for one action", "limit_once_per_action", LimitFactory, "account", "action"
    ),
    changed("a limit for an unknown action", "limit_action_known", LimitFactory, action="shout"),
    *(
        changed(
            f"a limit of none {period.replace('_', ' ')}", "limit_at_least_one", LimitFactory, **{period: 0}
        )
        for period in ("per_minute", "per_hour", "per_day")
    ),
    *(
        changed(
            f"a limit of none {period.replace('_', ' ')}",
            "limit_of_long_spans_at_least_one",
            LimitFactory,
            **{period: 0},
        )
        for period in ("per_24_hours", "per_7_days", "per_30_days")
    ),
    *(
        changed(f"no {period}", "limit_of_new_people_at_least_one", LimitFactory, **{period: 0})
        for period in ("new_per_day", "new_per_week")
    ),
    changed("a shortest gap alone", "limit_gap_ordered", LimitFactory, gap_min=30),
    changed("a longest gap alone", "limit_gap_ordered", LimitFactory, gap_max=60),
    changed("a shortest gap above the longest", "limit_gap_ordered", LimitFactory, GAP, gap_min=61),
    changed("a gap below zero", "limit_gap_ordered", LimitFactory, GAP, gap_min=-1),
    changed("a gap of more than a day", "limit_gap_ordered", LimitFactory, GAP, gap_max=86_401),
    changed("a batch without its pause", "limit_batch_whole", LimitFactory, BATCHES, batch_pause=None),
    changed("a batch pause without a batch", "limit_batch_whole", LimitFactory, BATCHES, batch_size=None),
    changed("a batch of none", "limit_batch_whole", LimitFactory, BATCHES, batch_size=0),
    changed("a batch pause of no time", "limit_batch_whole", LimitFactory, BATCHES, batch_pause=0),
    changed(
        "a batch pause of more than a day", "limit_batch_whole", LimitFactory, BATCHES, batch_pause=86_401
    ),
    # Recipients
    doubled(
        "a recipient twice for one owner and channel",
        "recipient_once",
        RecipientFactory,
        "owner",
        "channel",
        "address",
    ),
    *(
        changed(f"a recipient {what}", "recipient_address_canonical", RecipientFactory, **values)
        for what, values in {
            "of an unknown kind": {"kind": "crowd"},
            "on an unknown channel": {"channel": "pigeon"},
            "without an address": {"address": ""},
            "by a number with a space": {"address": "+60 123456789"},
            "by a number without its plus": {"address": "60123456789"},
            "whose kind is not its address's": {"kind": "group"},
        }.items()
    ),
    changed(
        "a mailbox in upper case", "recipient_address_canonical", RecipientFactory, MAILBOX, address="A@b.org"
    ),
    changed("a fourth follow-up", "recipient_attempts_at_most_3", RecipientFactory, attempts=4),
    doubled("a public id twice", "accounts_account_public_id_key", AccountFactory, "public_id"),
    doubled("a sync beside another", "group_sync_one_at_a_time", GroupSyncFactory, "account"),
    doubled("a tag twice for one owner", "tag_once", TagFactory, "owner", "name"),
    # Imports
    changed("an import of an unknown status", "import_status_known", ImportFactory, status="lost"),
    changed(
        "an import that does something unknown", "import_on_existing_known", ImportFactory, on_existing="ask"
    ),
    changed("an import on an unknown channel", "import_channel_known", ImportFactory, channel="pigeon"),
    changed("a row with an unknown outcome", "import_row_outcome_known", ImportRowFactory, outcome="lost"),
    doubled("a row twice in one import", "import_row_once", ImportRowFactory, "job", "number"),
    changed("an unknown change of health", "health_move_known", HealthChangeFactory, move="ill"),
    changed("an unknown health", "account_health_known", AccountFactory, health="ill"),
    changed("a pause for health without an end", "account_health_known", AccountFactory, health="paused"),
    changed(
        "an end of no pause",
        "account_health_known",
        AccountFactory,
        health="slow",
        health_until=timezone.now(),
    ),
    changed("an unknown change of consent", "consent_move_known", ConsentChangeFactory, move="may"),
]


@pytest.mark.parametrize("refusal", as_parameters(REFUSALS))
def test_the_database_refuses(refusal: Refusal) -> None:
    refusal.check()


def test_every_constraint_is_tried() -> None:
    assert declared("accounts") - {refusal.constraint for refusal in REFUSALS} == set()


@pytest.mark.parametrize(("model", "column"), numbers_from_zero("accounts"))
def test_the_database_refuses_a_number_below_zero(model: type[Model], column: str) -> None:
    check_below_zero(model, column)


@pytest.mark.parametrize(
    ("factory", "values"),
    [
        pytest.param(
            AccountFactory, {"warmup_start": 1, "warmup_step": 1, "warmup_ceiling": 1}, id="least warm-up"
        ),
        pytest.param(AccountFactory, {"group_concurrency": 64}, id="most groups in flight"),
        pytest.param(LimitFactory, {"gap_min": 0, "gap_max": 0}, id="no gap"),
        pytest.param(LimitFactory, {"gap_min": 86_400, "gap_max": 86_400}, id="a gap of one day"),
        pytest.param(LimitFactory, {"per_minute": 1, "per_hour": 1, "per_day": 1}, id="least limits"),
        pytest.param(LimitFactory, {"batch_size": 1, "batch_pause": 86_400}, id="slowest batches"),
        pytest.param(RecipientFactory, {"attempts": 3}, id="a third follow-up"),
    ],
)
def test_the_database_takes_what_is_just_allowed(factory: Any, values: dict[str, Any]) -> None:
    row = factory.create(**values)
    row.refresh_from_db()
    assert {name: getattr(row, name) for name in values} == values


def test_one_name_serves_on_two_channels_and_for_two_owners() -> None:
    first = AccountFactory.create(name="Front desk")
    AccountFactory.create(name="Front desk", owner=first.owner, by_email=True)
    AccountFactory.create(name="Front desk")


def test_one_address_serves_two_owners() -> None:
    first = RecipientFactory.create()
    assert RecipientFactory.create(address=first.address).pk != first.pk
