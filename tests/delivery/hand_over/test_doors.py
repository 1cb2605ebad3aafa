"""The doors of a hand-over: page, admin, command and API show both forecasts first, and say the same."""

import json
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse
from pytest_django.asserts import assertContains, assertNotContains, assertRedirects

from accounts.models import Account, User
from delivery import lifecycle
from delivery.models import Run
from delivery.states import AccountStatus
from reminders.fire import fire
from tests.factories import AccountFactory, ContactFactory, RecipientFactory, ReminderFactory

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("redis")]


@pytest.fixture
def office(owner: User) -> Account:
    return AccountFactory.create(owner=owner, name="Office")


@pytest.fixture
def shop(owner: User) -> Account:
    return AccountFactory.create(owner=owner, name="Shop")


@pytest.fixture
def run(owner: User, office: Account, shop: Account) -> Run:
    """A run of four that its flagged account has stopped; one of the four has talked with that account."""
    people = RecipientFactory.create_batch(4, owner=owner)
    ContactFactory.create(recipient=people[0], account=office)
    made = fire(
        ReminderFactory.create(
            owner=owner, name="Rent", accounts=[office], recipients=people, around_the_clock=True
        )
    )
    lifecycle.stop_account(office, status=AccountStatus.FLAGGED, reason="blocked")
    made.refresh_from_db()
    return made


def senders(run: Run) -> set[int]:
    return set(run.targets.values_list("account_id", flat=True))


def test_the_banner_of_a_paused_run_offers_it(logged_in: Client, run: Run) -> None:
    page = logged_in.get(reverse("runs:page", args=[run.pk]))
    assertContains(page, reverse("runs:hand_over", args=[run.pk]))


def test_without_another_account_the_banner_offers_nothing(
    logged_in: Client, run: Run, shop: Account
) -> None:
    Account.objects.filter(pk=shop.pk).update(status="paused")
    page = logged_in.get(reverse("runs:page", args=[run.pk]))
    assertNotContains(page, reverse("runs:hand_over", args=[run.pk]))


def test_the_page_shows_both_forecasts_before_it_moves_anything(
    logged_in: Client, run: Run, office: Account, shop: Account
) -> None:
    where = reverse("runs:hand_over", args=[run.pk])
    page = logged_in.get(where)
    assertContains(page, "3 messages to Shop.")
    assertContains(page, "Office is flagged: 4 messages wait until it can send again.")
    assertContains(page, "1 has talked with this account before")
    unseen = logged_in.post(where, {"to": shop.pk, "known": "on", "shown": page.context["shown"]})
    assert unseen.status_code == 200  # other choices than those that were shown: their forecasts come first
    assert senders(run) == {office.pk}
    done = logged_in.post(where, {"to": shop.pk, "shown": page.context["shown"]}, follow=True)
    assertRedirects(done, reverse("runs:page", args=[run.pk]))
    assertContains(done, "“Rent” was handed over. 3 messages to Shop.")
    assert senders(run) == {office.pk, shop.pk}


def test_known_people_move_where_it_is_asked_for(logged_in: Client, run: Run, shop: Account) -> None:
    where = reverse("runs:hand_over", args=[run.pk])
    page = logged_in.get(where, {"to": str(shop.pk), "known": "on"})
    assertContains(page, "4 messages to Shop.")
    logged_in.post(where, {"to": shop.pk, "known": "on", "shown": page.context["shown"]})
    assert senders(run) == {shop.pk}


def test_the_page_of_an_account_moves_all_its_work(
    logged_in: Client, run: Run, office: Account, shop: Account
) -> None:
    where = reverse("accounts:hand_over", args=[office.pk])
    assertContains(logged_in.get(reverse("accounts:page", args=[office.pk])), where)
    page = logged_in.get(where)
    assertContains(page, "Hand over all work of Office")
    logged_in.post(where, {"to": shop.pk, "shown": page.context["shown"]})
    assert senders(run) == {office.pk, shop.pk}


def test_a_run_that_has_ended_has_no_page(logged_in: Client, run: Run) -> None:
    lifecycle.cancel(run)
    where = reverse("runs:hand_over", args=[run.pk])
    assertRedirects(logged_in.get(where), reverse("runs:page", args=[run.pk]))


@pytest.mark.parametrize(
    ("who", "status"), [("mate", 200), ("staff", 200), ("reader", 403), ("stranger", 404)]
)
def test_the_roles_decide(
    client: Client, run: Run, request: pytest.FixtureRequest, who: str, status: int
) -> None:
    client.force_login(request.getfixturevalue(who))
    for where in ("runs:hand_over", "accounts:hand_over"):
        pk = run.pk if where.startswith("runs") else run.run_accounts.get().account_id
        assert client.get(reverse(where, args=[pk])).status_code == status


def test_the_admin_leads_to_the_page(client: Client, staff: User, run: Run, office: Account) -> None:
    client.force_login(staff)
    for model, row, page in (
        ("run", run.pk, "runs:hand_over"),
        ("account", office.pk, "accounts:hand_over"),
    ):
        app = "delivery" if model == "run" else "accounts"
        action = "hand_over_runs" if model == "run" else "hand_over"
        said = {"action": action, "_selected_action": [row]}
        answer = client.post(reverse(f"admin:{app}_{model}_changelist"), said)
        assertRedirects(answer, reverse(page, args=[row]), fetch_redirect_response=False)


def command(**options: Any) -> dict[str, Any]:
    out = StringIO()
    call_command("hand_over", json=True, stdout=out, **options)
    found: dict[str, Any] = json.loads(out.getvalue())
    return found


def test_the_command_shows_first_and_moves_with_yes(run: Run, office: Account, shop: Account) -> None:
    shown = command(run=run.pk, to=[shop.pk])
    assert shown["done"] is False
    assert shown["runs"][0]["moves"] == {str(shop.pk): 3}
    assert shown["runs"][0]["stays"] == {"known": 1}
    assert senders(run) == {office.pk}
    assert command(account=office.pk, to=[shop.pk], known=True, yes=True)["moved"] == 4
    assert senders(run) == {shop.pk}


def test_the_command_says_what_it_refuses(run: Run, office: Account) -> None:
    with pytest.raises(CommandError, match="Office is flagged and cannot send"):
        command(run=run.pk, to=[office.pk], yes=True)
    with pytest.raises(CommandError, match="There is no account 999999"):
        command(account=999_999, to=[office.pk])


def test_the_command_speaks_to_people_too(run: Run, shop: Account) -> None:
    out = StringIO()
    call_command("hand_over", run=run.pk, to=[shop.pk], stdout=out)
    assert f"Run {run.pk}, Rent: 3 messages to Shop. 1 stays" in out.getvalue()
    assert "repeat the command with --yes" in out.getvalue()
