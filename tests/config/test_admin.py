"""Rules that hold for every page of the admin, over all models."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import pytest
from django.apps import apps
from django.contrib import admin
from django.contrib.admin.widgets import AutocompleteMixin
from django.db import connection
from django.db.models import Model, QuerySet
from django.forms import Field, ModelChoiceField
from django.test import Client, RequestFactory
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from accounts import roles
from accounts.admin.roles import RoleAdmin
from accounts.models import Account, User
from tests.factories import FACTORY_OF, AccountFactory, UserFactory

pytestmark = pytest.mark.django_db

APPS = ("accounts", "reminders", "queues", "delivery", "activity", "audit", "api", "notices")
MODELS = [model for label in APPS for model in apps.get_app_config(label).get_models()]
MOST_QUERIES = 25

every_model = pytest.mark.parametrize("model", MODELS, ids=lambda model: model._meta.label)


def address(model: type[Model], page: str, *args: object) -> str:
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_{page}", args=args)


def queries(client: Client, url: str) -> int:
    """Return how many queries a page takes, after a first request has filled the caches."""
    client.get(url)
    with CaptureQueriesContext(
        connection,
    ) as captured:
        assert client.get(url).status_code == 200
    return len(captured)


@pytest.fixture
def staff_client(client: Client, staff: User) -> Client:
    client.force_login(staff)
    return client


@pytest.fixture
def superuser_client(client: Client) -> Client:
    client.force_login(UserFactory.create(superuser=True))
    return client


@every_model
def test_a_list_takes_as_many_queries_for_twelve_rows_as_for_two(
    model: type[Model], staff_client: Client
) -> None:
    FACTORY_OF[model].create_batch(2)
    few = queries(staff_client, address(model, "changelist"))
    FACTORY_OF[model].create_batch(10)
    assert queries(staff_client, address(model, "changelist")) == few <= MOST_QUERIES


@every_model
def test_a_row_takes_as_many_queries_among_twelve_as_among_two(
    model: type[Model], staff_client: Client
) -> None:
    row = FACTORY_OF[model].create_batch(2)[0]
    few = queries(staff_client, address(model, "change", row.pk))
    FACTORY_OF[model].create_batch(10)
    assert queries(staff_client, address(model, "change", row.pk)) == few <= MOST_QUERIES


@pytest.mark.parametrize("model", [m for m in MODELS if m is not User], ids=lambda model: model._meta.label)
def test_the_roles_decide_what_a_staff_member_finds(
    model: type[Model], staff_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = FACTORY_OF[model].create()

    def nothing(rows: QuerySet[Any], *_: object) -> QuerySet[Any]:
        return rows.none()

    monkeypatch.setattr(roles, "_limited", nothing)
    assert list(staff_client.get(address(model, "changelist")).context["cl"].queryset) == []
    assert staff_client.get(address(model, "change", row.pk)).status_code == 302


@every_model
def test_no_operator_gets_in(model: type[Model], client: Client, owner: User) -> None:
    client.force_login(owner)
    answer = client.get(address(model, "changelist"))
    assert answer.status_code == 302
    assert answer["Location"].startswith(reverse("admin:login"))


def test_every_model_has_pages_that_ask_the_roles() -> None:
    without = {model for model in MODELS if not isinstance(admin.site._registry.get(model), RoleAdmin)}
    assert without == {User}


def key_widgets(user: User) -> Iterator[tuple[str, object]]:
    """Yield the widget of each foreign key of every form, and of every row inside one."""
    request = RequestFactory().get("/")
    request.user = user
    for model in MODELS:
        page = admin.site.get_model_admin(model)
        if not page.has_add_permission(request):
            continue
        yield from widgets_of(model, page.get_form(request).base_fields)
        for inline in page.get_inline_instances(request):
            yield from widgets_of(inline.model, inline.get_formset(request)().empty_form.fields)


def widgets_of(model: type[Model], fields: Mapping[str, Field]) -> Iterator[tuple[str, object]]:
    for name, field in fields.items():
        if isinstance(field, ModelChoiceField) and name != "id":
            yield f"{model._meta.label}.{name}", getattr(field.widget, "widget", field.widget)


def test_every_foreign_key_is_found_by_typing(staff: User) -> None:
    widgets = dict(key_widgets(staff))
    assert {"accounts.Account.owner", "reminders.ReminderAccount.account"} <= widgets.keys()
    assert {name for name, widget in widgets.items() if not isinstance(widget, AutocompleteMixin)} == set()


def test_the_front_page_lists_all_four_apps_to_staff_without_model_permissions(staff_client: Client) -> None:
    shown = staff_client.get(reverse("admin:index")).context["app_list"]
    assert {app["app_label"] for app in shown} >= set(APPS)


@pytest.mark.parametrize(
    "label", ["accounts.Account", "accounts.User", "accounts.Recipient", "reminders.Media"]
)
def test_staff_find_by_typing_what_they_may_see(label: str, staff_client: Client) -> None:
    field = {
        "accounts.Account": "accounts.Limit.account",
        "accounts.User": "accounts.Account.owner",
        "accounts.Recipient": "reminders.FollowUp.recipient",
        "reminders.Media": "reminders.Part.media",
    }[label]
    row = FACTORY_OF[apps.get_model(label)].create()
    app, model, name = field.split(".")
    answer = staff_client.get(
        reverse("admin:autocomplete"),
        {"app_label": app, "model_name": model.lower(), "field_name": name, "term": str(row)},
    )
    assert [found["text"] for found in answer.json()["results"]] == [str(row)]


def test_a_long_list_is_counted_no_further_than_it_pays(
    staff_client: Client, owner: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("accounts.paging.COUNTED", 3)
    AccountFactory.create_batch(3, owner=owner)
    assert "3 accounts" in staff_client.get(address(Account, "changelist")).content.decode()
    AccountFactory.create(owner=owner)
    assert "3+ accounts" in staff_client.get(address(Account, "changelist")).content.decode()


def test_a_further_page_goes_on_where_the_last_one_ended(
    staff_client: Client, owner: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admin.site.get_model_admin(Account), "list_per_page", 2)
    accounts = [AccountFactory.create(owner=owner, name=name) for name in "ABCDE"]
    pages = [staff_client.get(address(Account, "changelist"), {"p": page}) for page in (1, 2, 3)]
    shown = [list(page.context["cl"].result_list) for page in pages]
    assert shown == [accounts[:2], accounts[2:4], accounts[4:]]


def test_staff_look_people_up_and_only_superusers_change_them(
    staff_client: Client, owner: User, client: Client
) -> None:
    url = address(User, "change", owner.pk)
    page = staff_client.get(url)
    assert page.status_code == 200
    assert "Password" not in page.content.decode()
    assert staff_client.post(url, {"is_superuser": "on"}).status_code == 403
    assert staff_client.get(address(User, "add")).status_code == 403
    assert staff_client.get(address(User, "delete", owner.pk)).status_code == 403


def test_a_superuser_makes_staff_of_an_operator(superuser_client: Client, owner: User) -> None:
    given = {"username": owner.username, "email": owner.email, "is_active": "on", "is_staff": "on"}
    answer = superuser_client.post(address(User, "change", owner.pk), given)
    assert answer.status_code == 302
    owner.refresh_from_db()
    assert owner.is_staff


def test_a_superuser_makes_a_person(superuser_client: Client) -> None:
    password = "a long way to the pace line"
    given = {"username": "new", "usable_password": "true", "password1": password, "password2": password}
    assert superuser_client.post(address(User, "add"), given).status_code == 302
    assert User.objects.get(username="new").check_password(password)


def test_nobody_deletes_a_person(superuser_client: Client, owner: User) -> None:
    assert superuser_client.post(address(User, "delete", owner.pk), {"post": "yes"}).status_code == 403


def test_the_admin_has_no_login_of_its_own(client: Client, owner: User, staff: User) -> None:
    url = reverse("admin:login")
    assert client.get(url, {"next": "/admin/delivery/"})["Location"] == "/login/?next=/admin/delivery/"
    client.force_login(owner)
    refused = client.get(url)
    assert refused.status_code == 403
    assert "The administration is for staff." in refused.content.decode()
    client.force_login(staff)
    assert client.get(url)["Location"] == reverse("admin:index")


def test_times_are_told_with_their_zone(staff_client: Client, staff: User) -> None:
    User.objects.filter(pk=staff.pk).update(zone="Asia/Kuala_Lumpur")
    account = AccountFactory.create()
    Account.objects.update(created_at=datetime(2026, 11, 18, 1, tzinfo=UTC))
    page = staff_client.get(address(Account, "change", account.pk)).content.decode()
    assert "18 Nov 2026, 09:00:00 +08" in page


def test_a_row_leads_to_the_operators_page_about_it(staff_client: Client) -> None:
    account = AccountFactory.create()
    page = staff_client.get(address(Account, "change", account.pk)).content.decode()
    assert f'href="{reverse("accounts:page", args=[account.pk])}"' in page
