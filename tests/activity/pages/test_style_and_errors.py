"""The lists, the dashboard and the error pages: who sees what, and that each page says something useful."""

import pytest
from django.core.exceptions import RequestDataTooBig
from django.http import HttpResponse
from django.template.loader import render_to_string
from django.test import Client, RequestFactory
from django.urls import reverse
from pytest_django import DjangoAssertNumQueries, Settings

from accounts.models import User
from activity.pages.style_and_errors import bad_request, styleguide
from tests.factories import AccountFactory, RecipientFactory, ReminderFactory, RunFactory

LISTS = ("reminders:list", "recipients:list", "accounts:list", "activity:list")


def page(client: Client, user: User, name: str, **query: str) -> str:
    client.force_login(user)
    response = client.get(reverse(name), query)
    assert response.status_code == 200
    return response.content.decode()


@pytest.fixture
def things(owner: User) -> User:
    """An owner with one of everything, each called Marathon."""
    account = AccountFactory.create(owner=owner, name="Marathon account")
    RecipientFactory.create(owner=owner, name="Marathon recipient")
    reminder = ReminderFactory.create(
        owner=owner, name="Marathon reminder", scheduled=True, accounts=[account]
    )
    RunFactory.create(
        reminder=reminder, name="Marathon run", paused=True, sent=3, pending=7, summary="Window closed."
    )
    return owner


@pytest.mark.django_db
@pytest.mark.parametrize("name", [*LISTS, "dashboard"])
def test_a_page_asks_a_visitor_to_log_in(client: Client, name: str) -> None:
    response = client.get(reverse(name))
    assert response.status_code == 302
    assert response["Location"].startswith(reverse("login"))


@pytest.mark.parametrize("name", LISTS)
def test_an_owner_a_mate_a_reader_and_staff_see_the_rows(
    client: Client, things: User, mate: User, reader: User, staff: User, name: str
) -> None:
    for person in (things, mate, reader, staff):
        assert "Marathon" in page(client, person, name)


@pytest.mark.parametrize("name", [*LISTS, "dashboard"])
def test_a_stranger_sees_none_of_them(client: Client, things: User, stranger: User, name: str) -> None:
    assert "Marathon" not in page(client, stranger, name)


@pytest.mark.parametrize("name", LISTS)
def test_an_empty_list_gives_the_reason_and_one_action(client: Client, stranger: User, name: str) -> None:
    text = page(client, stranger, name)
    assert 'class="empty"' in text
    assert text.count('class="button primary"') == 1


@pytest.mark.parametrize("name", [*LISTS, "dashboard"])
def test_the_navigation_marks_the_page_that_is_open(client: Client, owner: User, name: str) -> None:
    text = page(client, owner, name)
    assert text.count('aria-current="page"') == 1
    assert f'href="{reverse(name)}" aria-current="page"' in text


def test_only_staff_get_a_link_to_the_admin(client: Client, owner: User, staff: User) -> None:
    link = f'href="{reverse("admin:index")}"'
    assert link not in page(client, owner, "dashboard")
    assert link in page(client, staff, "dashboard")


def test_a_new_operator_is_led_to_the_first_of_three_steps(client: Client, owner: User) -> None:
    text = page(client, owner, "dashboard")
    assert "Nothing was sent yet" in text
    assert f'href="{reverse("accounts:list")}">Connect an account' in text


def test_the_next_step_follows_from_what_is_there(client: Client, owner: User) -> None:
    AccountFactory.create(owner=owner)
    text = page(client, owner, "dashboard")
    assert f'href="{reverse("recipients:list")}">Add recipients' in text


def test_the_dashboard_shows_what_waits_for_a_decision(client: Client, things: User) -> None:
    text = page(client, things, "dashboard")
    assert "Marathon run" in text
    assert "Window closed." in text
    assert "Nothing was sent yet" not in text


@pytest.mark.parametrize(("name", "most"), [*((name, 12) for name in LISTS), ("dashboard", 22)])
def test_a_page_takes_no_more_queries_for_more_rows(
    client: Client, owner: User, django_assert_max_num_queries: DjangoAssertNumQueries, name: str, most: int
) -> None:
    account = AccountFactory.create(owner=owner)
    RecipientFactory.create_batch(5, owner=owner, account=account)
    for reminder in ReminderFactory.create_batch(5, owner=owner, scheduled=True, accounts=[account]):
        RunFactory.create(reminder=reminder, paused=True, pending=1)
    client.force_login(owner)
    with django_assert_max_num_queries(most):
        client.get(reverse(name))


def test_a_search_finds_recipients_by_name_and_by_address(client: Client, owner: User) -> None:
    RecipientFactory.create(owner=owner, name="Anna", address="+60120000001")
    RecipientFactory.create(owner=owner, name="Benjamin", address="+60120000002")
    for search in ("ann", "+60120000001", "6012 000 0001"):
        text = page(client, owner, "recipients:list", q=search)
        assert "Anna" in text
        assert "Benjamin" not in text


def test_a_search_without_a_result_keeps_the_words_and_offers_the_way_back(
    client: Client, owner: User
) -> None:
    text = page(client, owner, "recipients:list", q="<nobody>")
    assert 'value="&lt;nobody&gt;"' in text
    assert "Show all recipients" in text


def test_a_recipient_shows_the_strongest_reason_why_it_gets_nothing(client: Client, owner: User) -> None:
    RecipientFactory.create(owner=owner, opted_out=True, cooling_down=True)
    RecipientFactory.create(owner=owner, cooling_down=True)
    text = page(client, owner, "recipients:list")
    assert text.count("pill-opted-out") == 1
    assert text.count("pill-cooling-down") == 1


def test_activity_is_filtered_by_what_the_address_says(client: Client, owner: User) -> None:
    reminder = ReminderFactory.create(owner=owner)
    RunFactory.create(reminder=reminder, name="Held run", paused=True, pending=1)
    RunFactory.create(reminder=reminder, name="Finished run", success=True)
    RunFactory.create(reminder=reminder, name="Put away run", success=True, archived=True)
    assert "Held run" in page(client, owner, "activity:list", status="paused")
    assert "Finished run" not in page(client, owner, "activity:list", status="paused")
    assert "Put away run" in page(client, owner, "activity:list", status="archived")
    everything = page(client, owner, "activity:list", status="no-such-status")
    assert "Held run" in everything
    assert "Put away run" not in everything


def test_archived_things_are_not_in_the_lists(client: Client, owner: User) -> None:
    AccountFactory.create(owner=owner, name="Old account", archived=True)
    RecipientFactory.create(owner=owner, name="Old recipient", archived=True)
    ReminderFactory.create(owner=owner, name="Old reminder", archived=True, accounts=0)
    for name in LISTS:
        assert "Old " not in page(client, owner, name)


def test_names_are_escaped(client: Client, owner: User) -> None:
    RecipientFactory.create(owner=owner, name="<script>alert(1)</script>")
    assert "<script>alert(1)" not in page(client, owner, "recipients:list")


def test_a_wrong_password_keeps_the_name_and_says_so(client: Client, owner: User) -> None:
    response = client.post(reverse("login"), {"username": "owner", "password": "wrong"})
    assert "Wrong username or password" in response.content.decode()
    assert 'value="owner"' in response.content.decode()


def test_too_many_wrong_passwords_show_when_to_come_back(
    client: Client, owner: User, settings: Settings
) -> None:
    for _ in range(settings.AXES_FAILURE_LIMIT):
        response = client.post(reverse("login"), {"username": "owner", "password": "wrong"})
    assert response.status_code == 429
    assert "Login blocked for a while" in response.content.decode()
    assert "Try again in 15 minutes" in response.content.decode()


@pytest.mark.parametrize("status", [400, 403, 404, 413, 500])
def test_an_error_page_needs_neither_a_request_nor_the_database(status: int) -> None:
    text = render_to_string(f"{status}.html")
    assert f"Error {status}" in text
    assert 'href="/"' in text


@pytest.mark.django_db
def test_an_unknown_address_answers_with_our_page(client: Client) -> None:
    response = client.get("/no/such/page/")
    assert response.status_code == 404
    assert "Page not found" in response.content.decode()


@pytest.mark.parametrize(("error", "status"), [(RequestDataTooBig(), 413), (ValueError(), 400)])
def test_a_request_that_is_too_large_gets_a_page_of_its_own(
    rf: RequestFactory, error: Exception, status: int
) -> None:
    assert bad_request(rf.post("/"), error).status_code == status


def test_a_form_without_its_token_gets_an_understandable_refusal() -> None:
    response = Client(enforce_csrf_checks=True).post(reverse("login"), {"username": "a", "password": "b"})
    assert response.status_code == 403
    assert "This form has expired" in response.content.decode()


def get_styleguide(rf: RequestFactory) -> HttpResponse:
    return styleguide(rf.get("/styleguide/"))


def test_the_style_page_is_there_in_debug_without_a_login(rf: RequestFactory, settings: Settings) -> None:
    settings.DEBUG = True
    assert "Every component in every state" in get_styleguide(rf).content.decode()


@pytest.mark.django_db
def test_the_style_page_is_not_there_otherwise(client: Client) -> None:
    assert client.get("/styleguide/").status_code == 404
