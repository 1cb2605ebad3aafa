"""The page of a run: its numbers, its targets, what a person decides, and its results."""

import csv
import io
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries
from redis import Redis

from accounts.models import Account, User
from activity.pages.runs import results
from delivery.lifecycle import steps
from delivery.models import Run, target_key
from delivery.wording_results import letters_of
from tests.factories import (
    AccountFactory,
    AttemptFactory,
    LimitFactory,
    RecipientFactory,
    RunAccountFactory,
    RunFactory,
    RunTargetFactory,
)


@pytest.fixture
def logged_in(client: Client, owner: User) -> Client:
    client.force_login(owner)
    return client


def url(run: Run, name: str = "page", *more: int) -> str:
    return reverse(f"runs:{name}", args=[run.pk, *more])


def partial(owner: User) -> Run:
    """Ended with one sent, two failed, one unconfirmed and one skipped."""
    run = RunFactory.create(
        reminder__owner=owner,
        reminder__around_the_clock=True,
        partial=True,
        sent=1,
        failed=2,
        unconfirmed=1,
        skipped=1,
    )
    account = RunAccountFactory.create(run=run, open=False).account
    for trait, count in (("sent", 1), ("failed", 2), ("unconfirmed", 1), ("skipped", 1)):
        RunTargetFactory.create_batch(count, run=run, account=account, **{trait: True})
    return run


def test_what_needs_a_person_is_shown_first_and_the_rest_by_the_address(
    logged_in: Client, owner: User
) -> None:
    run = partial(owner)
    page = logged_in.get(url(run)).content.decode()
    assert "No answer in time." in page
    assert "Mark sent" in page
    failed = logged_in.get(url(run), {"status": "failed"}).content.decode()
    assert failed.count("<span>No such number.</span>") == 2
    assert "Mark sent" not in failed
    assert "Retry failed" in failed
    assert "No messages here" in logged_in.get(url(run), {"status": "pending"}).content.decode()
    assert "Mark sent" in logged_in.get(url(run), {"status": "nonsense"}).content.decode()


def test_progress_is_a_partial_or_json(logged_in: Client, owner: User) -> None:
    run = RunFactory.create(reminder__owner=owner, sent=3, failed=1, pending=5, sending=1)
    account = RunAccountFactory.create(run=run).account
    Run.objects.filter(pk=run.pk).update(started_at=run.fired_at)
    AttemptFactory.create_batch(3, target=None, run=run, account=account, owner=owner, outcome="sent", part=0)
    page = logged_in.get(url(run, "progress")).content.decode()
    assert page.strip().startswith("<section")
    assert "hx-trigger" in page
    found = logged_in.get(url(run, "progress"), headers={"accept": "application/json"}).json()
    assert (found["sent"], found["failed"], found["pending"], found["total"]) == (3, 1, 6, 10)
    assert found["rate"] > 0
    assert found["finish_at"]


def test_an_open_run_says_how_it_will_go_on_and_a_settled_one_does_not(
    logged_in: Client, owner: User
) -> None:
    run = RunFactory.create(reminder__owner=owner, reminder__around_the_clock=True, targets=3)
    LimitFactory.create(account=run.run_accounts.get().account, per_day=1)
    page = logged_in.get(url(run)).content.decode()
    assert "Likely to pause" in page
    assert "with 1 of 3 delivered" in page
    over = RunFactory.create(reminder__owner=owner, success=True, sent=1)
    assert "Likely to pause" not in logged_in.get(url(over)).content.decode()


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"queued": True, "opens_at": None, "summary": "Waits for run 7."}, "Waits for run 7."),
        ({"queued": True}, "Waiting for the delivery window to open"),
        ({"paused": True}, "Paused. Nothing is sent until you resume it."),
        ({"paused": True, "opens_at": datetime(2026, 3, 12, 6, tzinfo=UTC)}, "then it continues by itself"),
    ],
)
def test_what_a_run_waits_for_is_said(
    logged_in: Client, owner: User, values: dict[str, Any], words: str
) -> None:
    run = RunFactory.create(reminder__owner=owner, pending=2, sent=1, **values)
    RunAccountFactory.create(run=run)
    assert words in logged_in.get(url(run)).content.decode()


def test_a_full_day_is_said_while_the_account_waits_for_the_next(logged_in: Client, owner: User) -> None:
    run = RunFactory.create(reminder__owner=owner, pending=2, summary="2 were moved to later days.")
    later = timezone.now() + timedelta(hours=3)
    account = AccountFactory.create(owner=owner, waiting_for="per_day", waiting_until=later)
    RunAccountFactory.create(run=run, account=account)
    assert "2 were moved to later days." in logged_in.get(url(run, "progress")).content.decode()
    Account.objects.update(waiting_for="gap")
    assert "2 were moved" not in logged_in.get(url(run, "progress")).content.decode()


def test_a_settled_run_stops_asking_for_its_progress(logged_in: Client, owner: User) -> None:
    run = RunFactory.create(reminder__owner=owner, success=True, sent=1)
    assert "hx-get" not in logged_in.get(url(run, "progress")).content.decode()


def test_why_it_waits_is_said_with_the_account(logged_in: Client, owner: User) -> None:
    run = RunFactory.create(reminder__owner=owner, pending=1)
    RunAccountFactory.create(run=run, account__name="Office", account__waking=True)
    assert "Office: limit per day reached." in logged_in.get(url(run, "progress")).content.decode()
    RunAccountFactory.create(run=run, account__name="Shop", account__offline=True)
    said = "Shop: offline: No answer. Continues automatically when the connection is back."
    assert said in logged_in.get(url(run, "progress")).content.decode()


def test_a_run_is_paused_resumed_and_canceled_by_hand(logged_in: Client, owner: User, redis: Redis) -> None:
    run = RunFactory.create(reminder__owner=owner, reminder__around_the_clock=True, targets=2)
    for name, status in (("pause", "paused"), ("resume", "running")):
        assert logged_in.post(url(run, name))["Location"] == url(run)
        run.refresh_from_db()
        assert run.status == status
    question = logged_in.get(url(run, "cancel")).content.decode()
    assert "0 of 2 already received it. The other 2 will not." in question
    run.refresh_from_db()
    assert run.status == "running"
    logged_in.post(url(run, "cancel"), {"confirmed": "1"})
    run.refresh_from_db()
    assert (run.status, run.skipped) == ("canceled", 2)


def test_pressing_resume_twice_resumes_once_and_says_so(logged_in: Client, owner: User, redis: Redis) -> None:
    run = RunFactory.create(reminder__owner=owner, reminder__around_the_clock=True, paused=True, targets=1)
    logged_in.post(url(run, "resume"))
    page = logged_in.post(url(run, "resume"), follow=True).content.decode()
    assert "only a paused run can be resumed" in page


def test_nobody_is_asked_about_canceling_what_has_ended(logged_in: Client, owner: User) -> None:
    run = RunFactory.create(reminder__owner=owner, success=True, sent=2)
    page = logged_in.get(url(run, "cancel"), follow=True)
    assert page.redirect_chain == [(url(run), 302)]
    assert "nothing left to cancel" in page.content.decode()


def test_above_a_hundred_the_name_is_typed_to_cancel(logged_in: Client, owner: User, redis: Redis) -> None:
    run = RunFactory.create(reminder__owner=owner, name="Rent is due", paused=True, sent=10, pending=101)
    page = logged_in.get(url(run, "cancel")).content.decode()
    assert "Type <strong>Rent is due</strong> to confirm" in page
    wrong = logged_in.post(url(run, "cancel"), {"confirmed": "1", "typed": "rent"}).content.decode()
    assert "The name does not match." in wrong
    assert 'value="rent"' in wrong
    run.refresh_from_db()
    assert run.canceled_at is None
    # Without target rows nothing is skipped, but the order is taken.
    logged_in.post(url(run, "cancel"), {"confirmed": "1", "typed": " rent is due "})
    run.refresh_from_db()
    assert run.canceled_at is not None


def test_a_run_that_is_being_canceled_says_so_and_offers_nothing(
    logged_in: Client, owner: User, redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(steps, "AT_ONCE", 1)
    run = RunFactory.create(reminder__owner=owner, reminder__around_the_clock=True, targets=3)
    logged_in.post(url(run, "cancel"), {"confirmed": "1"})
    page = logged_in.get(url(run)).content.decode()
    assert "Canceling…" in page
    assert f"Canceled by {owner}: nothing more is sent, and 2 messages are being taken back." in page
    assert "Nothing is sent until you resume it." not in page
    assert url(run, "resume") not in page
    assert url(run, "cancel") not in page
    for name in ("activity:list", "dashboard"):
        assert "Canceling…" in logged_in.get(reverse(name)).content.decode()


def test_failed_targets_are_retried_in_the_same_run(logged_in: Client, owner: User, redis: Redis) -> None:
    run = partial(owner)
    page = logged_in.post(url(run, "retry"), follow=True).content.decode()
    assert "was queued again. 2 messages will be sent again." in page
    run.refresh_from_db()
    assert (run.status, run.failed, run.pending) == ("running", 0, 2)


@pytest.mark.parametrize(("choice", "counts"), [("confirm", (2, 0)), ("resend", (1, 1))])
def test_an_unconfirmed_target_is_decided_by_a_person(
    logged_in: Client, owner: User, redis: Redis, choice: str, counts: tuple[int, int]
) -> None:
    run = partial(owner)
    target = run.targets.get(status="unconfirmed")
    back = f"{url(run)}?status=unconfirmed#targets"
    assert logged_in.post(url(run, choice, target.pk), {"next": back})["Location"] == back
    logged_in.post(url(run, choice, target.pk))
    run.refresh_from_db()
    assert (run.sent, run.pending, run.unconfirmed) == (*counts, 0)


def test_a_target_of_another_run_is_not_found(logged_in: Client, owner: User) -> None:
    run, other = partial(owner), partial(owner)
    target = other.targets.get(status="unconfirmed")
    assert logged_in.post(url(run, "confirm", target.pk)).status_code == 404


def test_nobody_is_sent_elsewhere_afterwards(logged_in: Client, owner: User, redis: Redis) -> None:
    run = RunFactory.create(reminder__owner=owner, reminder__around_the_clock=True, targets=1)
    for wanted in ("https://example.com/", "//example.com", "javascript:alert(1)"):
        response = logged_in.post(url(run, "pause"), {"next": wanted})
        assert response["Location"] == url(run)


def test_an_ended_run_is_archived(logged_in: Client, owner: User) -> None:
    run = RunFactory.create(reminder__owner=owner, success=True)
    logged_in.post(url(run, "archive"))
    run.refresh_from_db()
    assert run.archived_at is not None
    assert "Unarchive" in logged_in.get(url(run)).content.decode()
    logged_in.post(url(run, "unarchive"))
    run.refresh_from_db()
    assert run.archived_at is None


def test_only_an_action_that_asks_has_a_page(logged_in: Client, owner: User) -> None:
    run = RunFactory.create(reminder__owner=owner, targets=1)
    assert logged_in.get(url(run, "pause")).status_code == 405
    assert logged_in.get(url(run, "cancel")).status_code == 200


def rows_of(content: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(content.decode("utf-8-sig"))))


def test_results_come_as_a_table_of_every_target(
    logged_in: Client, owner: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(results, "CHUNK", 1)
    run = partial(owner)
    response = logged_in.get(url(run, "results"))
    assert response["Content-Disposition"].startswith(f'attachment; filename="run-{run.pk}-')
    rows = rows_of(b"".join(response))
    assert sorted(row["status"] for row in rows) == ["failed", "failed", "sent", "skipped", "unconfirmed"]
    assert {row["address"] for row in rows} == set(run.targets.values_list("recipient__address", flat=True))


def test_a_name_cannot_become_a_formula(logged_in: Client, owner: User) -> None:
    run = RunFactory.create(reminder__owner=owner, success=True, sent=1)
    recipient = RecipientFactory.create(owner=owner, name='=HYPERLINK("http://x")', address="+60123456789")
    RunTargetFactory.create(run=run, recipient=recipient, sent=True)
    (row,) = rows_of(b"".join(logged_in.get(url(run, "results"))))
    assert row["recipient"] == '\'=HYPERLINK("http://x")'
    assert row["address"] == "+60123456789"


def test_the_page_takes_as_many_queries_for_many_targets(
    logged_in: Client, owner: User, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    run = RunFactory.create(reminder__owner=owner, targets=60)
    RunAccountFactory.create_batch(3, run=run)
    with django_assert_max_num_queries(24):
        page = logged_in.get(url(run)).content.decode()
    assert page.count('<th scope="row">') == 50
    with django_assert_max_num_queries(8):
        logged_in.get(url(run, "progress"))


def test_the_results_of_each_wording_are_on_the_page_and_in_the_export(
    logged_in: Client, owner: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = [{"kind": "text", "text": "Hi", "wordings": ["Hi", "Good morning"]}]
    run = RunFactory.create(reminder__owner=owner, success=True, parts=parts, sent=6)
    account = AccountFactory.create(owner=owner)
    RunTargetFactory.create_batch(6, run=run, account=account, sent=True)
    page = logged_in.get(url(run)).content.decode()
    assert "Good morning" in page
    assert "Opted out since" in page
    lines = list(csv.DictReader(io.StringIO(b"".join(logged_in.get(url(run, "results"))).decode())))
    letters = [letters_of(run, target_key(run.key, target.pk)) for target in run.targets.order_by("pk")]
    assert [line["wording"] for line in lines] == letters
    monkeypatch.setattr("activity.pages.runs.page.MOST_COUNTED", 5)
    assert "Opted out since" not in logged_in.get(url(run)).content.decode()
    assert "Opted out since" in logged_in.get(url(run), {"wordings": ""}).content.decode()


def test_messages_that_came_back_have_a_sentence_a_tab_and_columns_of_their_own(
    logged_in: Client, owner: User
) -> None:
    run = RunFactory.create(reminder__owner=owner, success=True, sent=20, returned=2)
    account = AccountFactory.create(owner=owner)
    for kind in ("permanent", "complaint"):
        RunTargetFactory.create(
            run=run, account=account, returned=True, return_kind=kind, return_reason=f"because {kind}"
        )
    page = logged_in.get(url(run)).content.decode()
    assert "2 of 20 sent messages came back (10%)." in page
    tab = logged_in.get(url(run), {"status": "returned"}).content.decode()
    assert "nothing arrives at this address" in tab
    assert "reported as unwanted" in tab
    rows = rows_of(b"".join(logged_in.get(url(run, "results"))))
    assert sorted(row["return_reason"] for row in rows) == ["because complaint", "because permanent"]
    assert all(row["status"] == "sent" and row["returned_at"] for row in rows)


@pytest.mark.parametrize(
    ("failed", "returned", "slow"), [(0, 5, False), (0, 6, True), (6, 0, True), (3, 3, True)]
)
def test_a_run_that_errors_slow_down_says_so(
    logged_in: Client, owner: User, failed: int, returned: int, slow: bool
) -> None:
    run = RunFactory.create(
        reminder__owner=owner, sent=100 - failed, failed=failed, returned=returned, pending=5
    )
    page = logged_in.get(url(run)).content.decode()
    assert ("Sending more slowly because of errors: 6 of 100 messages" in page) is slow
