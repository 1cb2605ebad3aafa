"""The sentences of the account's page and of the list, and the buttons of the page."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries, Settings
from redis import Redis

from accounts.models import Account, GroupSync, Limit, User
from delivery.file_addresses import memory
from delivery.file_addresses.memory import Experience
from delivery.models import RunAccount
from delivery.pages.pairing import code_number
from sandbox.process import SandboxProcess
from tests.factories import (
    AccountFactory,
    AttemptFactory,
    LimitFactory,
    RecipientFactory,
    ReminderFactory,
    RunAccountFactory,
    RunFactory,
    RunTargetFactory,
)


@pytest.fixture
def person(client: Client, owner: User) -> User:
    client.force_login(owner)
    return owner


def page(client: Client, account: Account, name: str = "page") -> str:
    response = client.get(reverse(f"accounts:{name}", args=[account.pk]))
    assert response.status_code == 200
    return " ".join(response.content.decode().split())


def press(client: Client, account: Account, name: str, /, **data: Any) -> str:
    response = client.post(reverse(f"accounts:{name}", args=[account.pk]), data, follow=True)
    account.refresh_from_db()
    return " ".join(response.content.decode().split())


def test_a_search_for_what_no_name_can_hold_finds_all(client: Client, person: User, account: Account) -> None:
    assert account.name in client.get(reverse("accounts:list"), {"q": "\0"}).content.decode()


def test_it_says_that_files_go_inside_because_the_gateway_cannot_fetch_them(
    client: Client, person: User, redis: Redis, settings: Settings
) -> None:
    account = AccountFactory.create(owner=person, transport="waha")
    assert "Fetched by the gateway" not in page(client, account)
    settings.FILES_URL = "http://10.0.0.5:8000"
    assert "Fetched by the gateway, not tried yet" in page(client, account)
    failed = Experience().after_failure("AxiosError: connect ECONNREFUSED", now=1_790_000_000)
    memory.remember(redis, account.pk, failed)
    told = page(client, account)
    assert "because the gateway could not fetch them from this installation: AxiosError: connect" in told
    memory.remember(redis, account.pk, Experience(works=True))
    assert "Fetched by the gateway </dd>" in page(client, account)


# Why it is not sending


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({}, "Ready. Nothing to send."),
        ({"status": "unpaired"}, "Not connected to the service."),
        ({"status": "pairing"}, "Waiting for the code to be scanned."),
        (
            {"status": "offline", "status_reason": "no answer"},
            "Offline: no answer. Continues automatically when the connection is back.",
        ),
        (
            {"status": "flagged", "status_reason": "logged out"},
            "Blocked by the service. Please check the reason: logged out.",
        ),
        ({"archived_at": timezone.now()}, "Archived. Nothing is sent from this account."),
    ],
)
def test_it_says_in_one_sentence_why_it_is_not_sending(
    client: Client, person: User, values: dict[str, Any], sentence: str
) -> None:
    account = AccountFactory.create(owner=person, **values)
    assert sentence in page(client, account)


@pytest.mark.parametrize(
    ("reason", "minutes", "sentence"),
    [
        ("per_day", 60, "Limit per day reached. Continues <time"),
        (
            "slowed",
            1,
            'Waiting, because the gateway asked us to slow down. Next try in <b class="num" data-countdown=',
        ),
        ("per_day", -1, "Sending, about one message every"),  # that is over
        ("gap", 1, 'Next message in <b class="num" data-countdown='),
        ("", 0, "Sending, about one message every"),
    ],
)
def test_with_a_run_it_says_what_it_waits_for(
    client: Client, person: User, reason: str, minutes: int, sentence: str
) -> None:
    until = timezone.now() + timedelta(minutes=minutes)
    account = AccountFactory.create(owner=person, waiting_for=reason, waiting_until=until)
    RunAccountFactory.create(run=RunFactory.create(reminder__owner=person), account=account)
    assert sentence in page(client, account)


def test_a_paused_run_is_named_as_the_reason(client: Client, person: User) -> None:
    account = AccountFactory.create(owner=person)
    run = RunFactory.create(reminder__owner=person, paused=True)
    RunAccountFactory.create(run=run, account=account)
    assert "1 run is paused." in page(client, account)


# Pausing and its like


def test_pause_and_resume_say_who_and_when(client: Client, person: User, account: Account) -> None:
    assert "Nothing is sent until you resume" in press(client, account, "pause")
    text = page(client, account)
    assert "Paused by owner" in text
    assert "Since <time" in text
    assert ", by owner." in text
    press(client, account, "resume")
    assert account.status == "active"


def test_pressed_twice_it_is_done_once(client: Client, person: User, account: Account) -> None:
    press(client, account, "pause")
    changed = account.status_changed_at
    press(client, account, "pause")
    assert (account.status, account.status_changed_at) == ("paused", changed)


def test_logging_out_asks_first_with_the_number_of_runs(
    client: Client, person: User, account: Account, gateway: SandboxProcess
) -> None:
    run = RunFactory.create(reminder__owner=person)
    RunAccountFactory.create(run=run, account=account)
    assert "1 open run is paused." in page(client, account, "log_out")
    assert account.status == "active"
    press(client, account, "log_out")
    run.refresh_from_db()
    assert (account.status, run.status) == ("unpaired", "paused")


def test_checking_takes_over_what_the_service_says(
    client: Client, person: User, account: Account, gateway: SandboxProcess
) -> None:
    assert "The service reports that this account is connected." in press(client, account, "check")
    gateway.behave(account.credentials["account"], state="STOPPED")
    assert "The service reports that this account is not connected." in press(client, account, "check")
    assert account.status == "offline"
    assert "is connected." in press(client, account, "connect")
    assert account.status == "active"


def test_a_service_that_is_away_is_said(client: Client, person: User, account: Account) -> None:
    account.credentials = {**account.credentials, "base_url": "http://127.0.0.1:9"}
    account.save()
    assert "connection refused, 127.0.0.1:9" in press(client, account, "connect")
    assert "does not answer" in press(client, account, "check")
    assert account.status == "active"


def test_archiving_asks_first_and_is_refused_while_runs_are_open(
    client: Client, person: User, account: Account
) -> None:
    share = RunAccountFactory.create(run=RunFactory.create(reminder__owner=person), account=account)
    ReminderFactory.create(owner=person, accounts=[account])
    assert "Used by 1 reminder." in page(client, account, "archive")
    assert "1 run is still open on Office phone" in press(client, account, "archive")
    assert account.archived_at is None
    RunAccount.objects.filter(pk=share.pk).update(open=False)
    press(client, account, "archive")
    assert (account.archived_at is None, account.status) == (False, "paused")
    assert "Office phone" not in client.get(reverse("accounts:list")).content.decode().partition("<main")[2]
    assert "Office phone" in client.get(reverse("accounts:list"), {"show": "archived"}).content.decode()
    press(client, account, "unarchive")
    assert account.archived_at is None


def test_reading_groups_starts_once_and_shows_how_far_it_is(
    client: Client, person: User, account: Account
) -> None:
    press(client, account, "sync")
    press(client, account, "sync")
    sync = GroupSync.objects.get()
    GroupSync.objects.update(seen=1234)
    assert "Reading groups: 1,234 so far." in page(client, account, "now")
    GroupSync.objects.filter(pk=sync.pk).update(finished_at=timezone.now(), added=7, renamed=2, left=1)
    assert "7 new, 2 renamed, 1 left" in page(client, account)


def test_an_open_page_follows_the_groups_that_are_read(
    client: Client, person: User, account: Account
) -> None:
    def swapped() -> str:
        url = reverse("accounts:now", args=[account.pk])
        return client.get(url, headers={"HX-Request": "true"}).content.decode()

    assert "account-groups" not in swapped()
    sync = GroupSync.objects.create(account=account)
    RecipientFactory.create(owner=person, account=account, group=True)
    assert "1 group</a>" in swapped()
    GroupSync.objects.filter(pk=sync.pk).update(finished_at=timezone.now() - timedelta(minutes=2))
    assert "account-groups" not in swapped()


def test_a_lock_of_first_contacts_is_shown_and_can_be_lifted(
    client: Client, person: User, account: Account
) -> None:
    Account.objects.filter(pk=account.pk).update(first_contacts_until=timezone.now() + timedelta(hours=3))
    assert "No messages to new people" in page(client, account)
    press(client, account, "unlock")
    assert account.first_contacts_until is None
    assert "No messages to new people" not in page(client, account)


def test_a_new_webhook_kills_the_old_address(
    client: Client, person: User, account: Account, settings: Any
) -> None:
    settings.PUBLIC_URL = "http://testserver"
    old = account.webhook["key"]
    assert old in page(client, account)
    press(client, account, "renew_webhook")
    assert account.webhook["key"] != old
    assert account.reports_to == "http://testserver"
    assert client.post(f"/hooks/{account.public_id}/{old}").status_code == 404


# Limits, warm-up, runs, troubles


def test_each_limit_says_where_it_comes_from(client: Client, person: User, account: Account) -> None:
    LimitFactory.create(account=account, per_minute=7)
    Account.objects.filter(pk=account.pk).update(
        profile="whatsapp_careful", as_before=False, warmup_clean_days=2
    )
    text = page(client, account)
    assert '<span class="num">7</span><small>set for this account</small>' in text
    assert '<span class="num">30 to 60 s</span><small>profile Careful WhatsApp</small>' in text
    assert '<span class="num">80</span><small>warm-up, day 3</small>' in text


def test_limits_are_changed_and_taken_back(client: Client, person: User, account: Account) -> None:
    press(
        client,
        account,
        "limits",
        **{"message-per_minute": "5", "message-gap_min": "2", "message-gap_max": "9"},
    )
    limit = Limit.objects.get(account=account)
    assert (limit.per_minute, limit.gap_min, limit.gap_max) == (5, 2, 9)
    press(client, account, "limits", **{"message-per_minute": ""})
    assert not Limit.objects.filter(account=account).exists()


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"message-gap_min": "5"}, "Enter both the shortest and the longest gap."),
        (
            {"message-gap_min": "9", "message-gap_max": "2"},
            "The longest gap must not be shorter than the shortest.",
        ),
        ({"message-batch_size": "9"}, "Enter both the batch size and the break."),
        ({"message-gap_min": "-5", "message-gap_max": "-5"}, "Enter 0 to 86,400 seconds (one day)."),
        ({"message-gap_min": "1", "message-gap_max": "90000"}, "Enter 0 to 86,400 seconds (one day)."),
        ({"message-batch_size": "9", "message-batch_pause": "0"}, "Enter 0.1 to 86,400 seconds"),
        ({"message-batch_size": "0", "message-batch_pause": "5"}, "Enter at least 1."),
        ({"message-per_day": "0"}, "Enter at least 1."),
        ({"message-per_day": "many"}, "Write a whole number"),
    ],
)
def test_limits_that_make_no_sense_are_refused_next_to_their_field(
    client: Client, person: User, account: Account, given: dict[str, str], complaint: str
) -> None:
    text = press(client, account, "limits", **given)
    assert complaint in text
    assert "Constraint" not in text
    assert not Limit.objects.filter(account=account).exists()


def test_todays_use_is_counted_from_the_ledger(client: Client, person: User, account: Account) -> None:
    run = RunFactory.create(reminder__owner=person)
    for _ in range(3):
        AttemptFactory.create(target=RunTargetFactory.create(run=run, account=account, sent=True))
    text = page(client, account)
    assert "Messages today" in text
    assert "<b>3</b>, no limit" in text
    assert "<b>3</b> of 40" in text


def test_the_warm_up_is_drawn_with_today_marked(client: Client, person: User) -> None:
    account = AccountFactory.create(owner=person, warming_up=True, warmup_clean_days=4)
    text = page(client, account)
    assert text.count("plot-bar today") == 1
    assert "Day 5: 140 messages (today)" in text


def test_recent_troubles_and_runs_are_listed(client: Client, person: User, account: Account) -> None:
    run = RunFactory.create(reminder__owner=person, name="Choir practice")
    RunAccountFactory.create(run=run, account=account)
    target = RunTargetFactory.create(run=run, account=account, failed=True)
    AttemptFactory.create(target=target, rejected=True)
    AttemptFactory.create(target=RunTargetFactory.create(run=run, account=account, sent=True))
    text = page(client, account)
    assert "Choir practice" in text
    assert text.count("No such number.") == 1


# Editing


def edited(account: Account, **changes: str) -> dict[str, Any]:
    given: dict[str, Any] = {
        "hours-work_days": ["1", "2", "4", "8", "16", "32", "64"],
        "name": account.name,
        "profile": account.profile,
        "zone": account.zone,
        "own_address": account.own_address,
        "service-base_url": account.credentials["base_url"],
        "service-account": account.credentials["account"],
        "service-token": "",
        "service-idempotent": "yes",
        "service-pairing": "no",
    }
    return given | changes


def test_a_secret_that_is_left_empty_is_kept(client: Client, person: User, account: Account) -> None:
    press(client, account, "edit", **edited(account, name="Front desk"))
    assert account.name == "Front desk"
    assert account.credentials["token"] == "a-token-nobody-sees"
    press(client, account, "edit", **edited(account, **{"service-token": "another"}))
    assert account.credentials["token"] == "another"


def test_a_stored_secret_does_not_follow_to_another_server(
    client: Client, mate: User, account: Account
) -> None:
    client.force_login(mate)
    known, elsewhere = account.credentials["base_url"], {"service-base_url": "http://127.0.0.1:9"}
    text = press(client, account, "edit", **edited(account, **elsewhere))
    assert "Enter this secret again" in text
    assert account.credentials["base_url"] == known
    press(client, account, "edit", **edited(account, **elsewhere, **{"service-token": "another"}))
    assert account.credentials["base_url"] == "http://127.0.0.1:9"


def test_editing_leaves_alone_what_the_engine_writes(client: Client, person: User, account: Account) -> None:
    Account.objects.filter(pk=account.pk).update(fence=42, slow_factor=2)
    press(client, account, "edit", **edited(account, name="Front desk"))
    assert (account.fence, account.slow_factor) == (42, 2)


def test_typing_is_switched_on_where_the_service_can_show_it(
    client: Client, person: User, account: Account
) -> None:
    shown = [account.shows_typing]
    for typed in ({"pace-shows_typing": "on"}, {}):
        press(client, account, "edit", **edited(account, **typed))
        shown.append(account.shows_typing)
    assert shown == [False, True, False]
    mail = AccountFactory.create(owner=person, by_email=True, transport="email")
    page = client.get(reverse("accounts:edit", args=[mail.pk])).content.decode()
    assert "pace-shows_typing" not in page


def test_a_warm_up_has_three_numbers_or_none(client: Client, person: User, account: Account) -> None:
    text = press(client, account, "edit", **edited(account, **{"pace-warmup_start": "20"}))
    assert "Enter all three numbers, or leave all three empty." in text
    numbers = {"pace-warmup_start": "20", "pace-warmup_step": "10", "pace-warmup_ceiling": "100"}
    press(client, account, "edit", **edited(account, **numbers))
    assert (account.warmup_start, account.warmup_ceiling) == (20, 100)


@pytest.mark.parametrize(
    ("start", "ceiling", "clean_days"),
    [("20", "100", 4), ("20", "900", 4), ("30", "100", 0)],
    ids=["the same plan", "another ceiling", "another start"],
)
def test_another_plan_begins_at_its_first_day(
    client: Client, person: User, account: Account, start: str, ceiling: str, clean_days: int
) -> None:
    plan = {"warmup_start": 20, "warmup_step": 10, "warmup_ceiling": 100}
    Account.objects.filter(pk=account.pk).update(**plan, warmup_clean_days=4, warmup_counted_on="2026-11-17")
    numbers = {"pace-warmup_start": start, "pace-warmup_step": "10", "pace-warmup_ceiling": ceiling}
    press(client, account, "edit", **edited(account, **numbers))
    assert account.warmup_clean_days == clean_days
    assert account.warmup_counted_on is not None


# Pairing


@pytest.mark.parametrize(
    ("seconds", "number"), [(0, 1), (59.9, 1), (60, 2), (79, 2), (80, 3), (159, 6), (10_000, 6)]
)
def test_codes_are_numbered_by_the_time_they_hold(seconds: float, number: int) -> None:
    assert code_number(seconds) == number


def test_the_code_is_shown_until_it_is_scanned(
    client: Client, person: User, account: Account, gateway: SandboxProcess
) -> None:
    name = account.credentials["account"]
    gateway.behave(name, state="SCAN_QR_CODE", token=account.credentials["token"])
    press(client, account, "connect")
    assert account.status == "pairing"
    first = client.get(reverse("accounts:pair_now", args=[account.pk]))
    assert b"Scan within" in first.content
    mark = first.content.decode().partition("mark=")[2].partition('"')[0]
    same = client.get(reverse("accounts:pair_now", args=[account.pk]), {"mark": mark})
    assert same.status_code == 204
    gateway.behave(name, state="WORKING")
    done = client.get(reverse("accounts:pair_now", args=[account.pk]), {"mark": mark})
    assert done["HX-Redirect"] == reverse("accounts:page", args=[account.pk])


def test_codes_that_ran_out_can_be_asked_for_again(
    client: Client, person: User, account: Account, gateway: SandboxProcess
) -> None:
    name = account.credentials["account"]
    gateway.behave(name, state="SCAN_QR_CODE", token=account.credentials["token"])
    press(client, account, "connect")
    gateway.behave(name, state="STOPPED")
    assert "The codes expired" in page(client, account, "pair")
    press(client, account, "connect")
    assert account.status == "pairing"


def test_a_code_to_type_is_given_for_a_number(
    client: Client, person: User, account: Account, gateway: SandboxProcess
) -> None:
    gateway.behave(account.credentials["account"], state="SCAN_QR_CODE", token=account.credentials["token"])
    press(client, account, "connect")
    assert 'class="code"' in press(client, account, "pair", phone="+60 12-345 6789")
    assert "Write the number with its country code" in press(client, account, "pair", phone="hello")


# How many queries


def test_no_page_asks_more_as_there_is_more_to_show(
    client: Client, person: User, account: Account, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    for _ in range(8):
        run = RunFactory.create(reminder__owner=person)
        RunAccountFactory.create(run=run, account=account)
        AttemptFactory.create(target=RunTargetFactory.create(run=run, account=account), rejected=True)
        AccountFactory.create(owner=person)
    with django_assert_max_num_queries(22):
        page(client, account)
    with django_assert_max_num_queries(11):
        page(client, account, "now")
    with django_assert_max_num_queries(12):
        client.get(reverse("accounts:list"))
