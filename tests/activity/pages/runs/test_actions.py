"""Actions on runs from the lists: one at a time, many after a question, and none by the wrong people."""

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from accounts.models import User
from delivery.models import Run
from tests.factories import ReminderFactory, RunFactory

pytestmark = pytest.mark.django_db

URL = "activity:move"


def held(owner: User, *, targets: int = 2, name: str = "Rent is due") -> Run:
    reminder = ReminderFactory.create(owner=owner, name=name, around_the_clock=True)
    run = RunFactory.create(reminder=reminder, sent=1, targets=targets)
    Run.objects.filter(pk=run.pk).update(status="paused", pause_reason="operator")
    return Run.objects.get(pk=run.pk)


def post(client: Client, user: User, **said: Any) -> Any:
    client.force_login(user)
    return client.post(reverse(URL), said, follow=True)


def told(answer: Any) -> list[str]:
    return [str(message) for message in answer.context["messages"]]


def test_a_row_is_resumed_by_its_button_and_one_stays_where_one_was(client: Client, owner: User) -> None:
    run = held(owner)
    answer = post(client, owner, one=f"resume {run.pk}", next="/activity/?status=paused")
    assert answer.redirect_chain == [("/activity/?status=paused", 302)]
    assert told(answer) == ["“Rent is due” was resumed."]
    run.refresh_from_db()
    assert run.status in {"running", "queued"}


@pytest.mark.parametrize("where", ["https://elsewhere.example/", "//elsewhere.example/", ""])
def test_one_is_never_sent_to_another_site(client: Client, owner: User, where: str) -> None:
    client.force_login(owner)
    answer = client.post(reverse(URL), {"one": f"resume {held(owner).pk}", "next": where})
    assert answer["Location"] == reverse("activity:list")


@pytest.mark.parametrize(("who", "moved"), [("mate", True), ("staff", True), ("reader", False)])
def test_the_roles_decide(
    client: Client, owner: User, request: pytest.FixtureRequest, who: str, moved: bool
) -> None:
    run = held(owner)
    answer = post(client, request.getfixturevalue(who), one=f"resume {run.pk}")
    run.refresh_from_db()
    assert (run.status != "paused") == moved
    assert ("You may not change" in told(answer)[0]) != moved


def test_a_stranger_finds_no_such_run(client: Client, owner: User, stranger: User) -> None:
    run = held(owner)
    assert "No run was chosen" in told(post(client, stranger, one=f"resume {run.pk}"))[0]
    run.refresh_from_db()
    assert run.status == "paused"


def test_a_visitor_is_asked_to_log_in(client: Client, owner: User) -> None:
    answer = client.post(reverse(URL), {"one": f"resume {held(owner).pk}"})
    assert answer.status_code == 302
    assert answer["Location"].startswith(reverse("login"))


def test_an_unknown_action_is_not_there(client: Client, owner: User) -> None:
    assert post(client, owner, do="delete", run=[1]).status_code == 404


def test_choosing_nothing_is_told(client: Client, owner: User) -> None:
    assert "No run was chosen" in told(post(client, owner, do="archive"))[0]


def test_cancel_asks_first_and_says_how_many_are_given_up(client: Client, owner: User) -> None:
    run = held(owner, targets=3)
    text = post(client, owner, one=f"cancel {run.pk}").content.decode()
    assert "1 of 4 already received it. The other 3 will not." in text
    run.refresh_from_db()
    assert run.status == "paused"
    post(client, owner, do="cancel", run=[run.pk], confirmed="1")
    run.refresh_from_db()
    assert (run.status, run.skipped) == ("partial", 3)


def test_above_a_hundred_targets_the_name_is_typed(client: Client, owner: User) -> None:
    run = held(owner, targets=101)
    said = {"do": "cancel", "run": [run.pk], "confirmed": "1"}
    assert "Type <strong>Rent is due</strong> to confirm" in post(client, owner, **said).content.decode()
    wrong = post(client, owner, **said, typed="Rent").content.decode()
    assert "The name does not match." in wrong
    run.refresh_from_db()
    assert run.status == "paused"
    post(client, owner, **said, typed=" rent is due ")
    run.refresh_from_db()
    assert run.status == "partial"


def test_many_are_changed_after_a_question_and_refusals_are_told(client: Client, owner: User) -> None:
    reminder = ReminderFactory.create(owner=owner)
    done = RunFactory.create_batch(2, reminder=reminder, success=True)
    going = RunFactory.create(reminder=reminder)
    said = {"do": "archive", "run": [run.pk for run in (*done, going)]}
    question = post(client, owner, **said).content.decode()
    assert "Archive: 3 runs?" in question
    assert "2 of 3 runs can be archived. The others stay as they are." in question
    assert not Run.objects.filter(archived_at__isnull=False).exists()
    answer = told(post(client, owner, **said, confirmed="1"))
    assert answer[0] == "2 runs were archived."
    assert answer[1].startswith(f"Run {going.pk} is running")
    assert Run.objects.filter(archived_at__isnull=False).count() == 2


def test_all_that_match_a_filter_are_changed_after_a_question(client: Client, owner: User) -> None:
    reminder = ReminderFactory.create(owner=owner, name="Rent")
    RunFactory.create_batch(60, reminder=reminder, success=True)  # more than one page shows
    going = RunFactory.create(reminder=reminder)
    other = RunFactory.create(reminder=ReminderFactory.create(owner=owner, name="Other"), success=True)
    client.force_login(owner)
    page = client.get(reverse("activity:list"), {"q": "rent"}).content.decode()
    assert "All 61 that match" in " ".join(page.split())
    asked = post(client, owner, do="archive", all="1", matching="q=rent")
    assert "Archive: 60 runs?" in asked.content.decode()
    assert not Run.objects.filter(archived_at__isnull=False).exists()
    RunFactory.create(reminder=reminder, success=True)  # was not among those shown
    shown = [run.pk for run in asked.context["question"].runs]
    assert told(post(client, owner, do="archive", run=shown, confirmed="1")) == ["60 runs were archived."]
    assert set(Run.objects.filter(archived_at=None, pk__in=[going.pk, other.pk])) == {going, other}
    assert Run.objects.filter(archived_at=None, reminder=reminder).count() == 2


def test_all_that_match_are_those_that_one_may_touch(
    client: Client, owner: User, reader: User, stranger: User
) -> None:
    held(owner)
    for person in (reader, stranger):
        answer = post(client, person, do="resume", all="1", matching="")
        assert told(answer) == ["None of these runs can be resumed now."]
    assert Run.objects.get().status == "paused"


def test_it_works_without_cookies_from_elsewhere(owner: User) -> None:
    careful = Client(enforce_csrf_checks=True)
    careful.force_login(owner)
    assert careful.post(reverse(URL), {"one": f"resume {held(owner).pk}"}).status_code == 403
