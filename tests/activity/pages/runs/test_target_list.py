"""The messages of a run: found by name or address, grouped by cause, decided about together."""

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from redis import Redis

from accounts.models import Account, User
from delivery.models import Run, RunTarget
from tests.factories import RecipientFactory, RunAccountFactory, RunFactory, RunTargetFactory


@pytest.fixture
def logged_in(client: Client, owner: User) -> Client:
    client.force_login(owner)
    return client


def url(run: Run, name: str = "page") -> str:
    return reverse(f"runs:{name}", args=[run.pk])


@pytest.fixture
def run(owner: User, redis: Redis) -> Run:
    """A run that ended with two of one error, one of another, and two unconfirmed."""
    run = RunFactory.create(
        reminder__owner=owner, reminder__around_the_clock=True, partial=True, failed=3, unconfirmed=2
    )
    account = RunAccountFactory.create(run=run, open=False, account__name="Office phone").account
    for error in ("500", "500", "No such number."):
        RunTargetFactory.create(run=run, account=account, failed=True, error=error)
    RunTargetFactory.create_batch(2, run=run, account=account, unconfirmed=True)
    choir = RecipientFactory.create(owner=owner, name="Choir of the Church", address="+60123456789")
    RunTargetFactory.create(run=run, account=account, recipient=choir, sent=True)
    return run


@pytest.mark.parametrize("words", ["choir", "chu cho", "+60 12 345 6789", "6012345"])
def test_a_message_is_found_by_name_or_address_whatever_its_status(
    logged_in: Client, run: Run, words: str
) -> None:
    answer = logged_in.get(url(run), {"q": words, "status": "failed"})
    assert [str(target.recipient) for target in answer.context["page"].rows] == ["Choir of the Church"]


def test_nobody_found_says_so_and_leads_back(logged_in: Client, run: Run) -> None:
    page = logged_in.get(url(run), {"q": "nobody"}).content.decode()
    assert "No recipient of this run has this name or address." in page


def test_another_owners_recipients_are_not_found(logged_in: Client, run: Run, stranger: User) -> None:
    other = RecipientFactory.create(owner=stranger, name="Choir")
    RunTargetFactory.create(recipient=other)
    assert len(logged_in.get(url(run), {"q": "choir"}).context["page"].rows) == 1


def test_errors_have_one_line_and_one_button_per_cause(logged_in: Client, run: Run) -> None:
    page = " ".join(logged_in.get(url(run), {"status": "failed"}).content.decode().split())
    assert page.index('2 \N{MULTIPLICATION SIGN}</strong> 500 <span class="quiet">from') < page.index(
        "1 \N{MULTIPLICATION SIGN}</strong> No such number."
    )
    assert page.count(f'action="{url(run, "retry-all")}"') == 3


def test_a_cause_is_retried_after_the_number_is_confirmed(logged_in: Client, run: Run) -> None:
    account = run.run_accounts.get().account_id
    data = {"account": account, "cause": "500"}
    assert "Retry all: 2 messages?" in logged_in.post(url(run, "retry-all"), data).content.decode()
    run.refresh_from_db()
    assert run.failed == 3
    answer = logged_in.post(url(run, "retry-all"), data | {"confirmed": "1"}, follow=True)
    assert "2 messages were queued again." in answer.content.decode()
    run.refresh_from_db()
    assert (run.failed, run.pending) == (1, 2)


def test_all_unconfirmed_are_marked_as_sent_after_the_number_is_confirmed(
    logged_in: Client, run: Run
) -> None:
    assert "Mark all sent: 2 messages?" in logged_in.post(url(run, "confirm-all")).content.decode()
    answer = logged_in.post(url(run, "confirm-all"), {"confirmed": "1"}, follow=True)
    assert "2 messages were marked as sent." in answer.content.decode()
    again = logged_in.post(url(run, "confirm-all"), {"confirmed": "1"}, follow=True)
    assert "No unconfirmed message is left to decide about." in again.content.decode()


def test_readers_see_the_causes_without_buttons_and_strangers_see_nothing(
    client: Client, run: Run, reader: User, stranger: User
) -> None:
    client.force_login(reader)
    page = client.get(url(run), {"status": "failed"}).content.decode()
    assert "No such number." in page
    assert url(run, "retry-all") not in page
    assert client.post(url(run, "retry-all"), {"confirmed": "1"}).status_code == 403
    client.force_login(stranger)
    assert client.post(url(run, "retry-all"), {"confirmed": "1"}).status_code == 404


def test_a_run_under_way_shows_its_errors_and_when_they_can_be_retried(logged_in: Client, run: Run) -> None:
    Run.objects.update(status="running", finished_at=None)
    page = logged_in.get(url(run), {"status": "failed"}).content.decode()
    assert "You can retry them when the run has ended." in page
    assert url(run, "retry-all") not in page


def test_the_next_try_is_never_in_the_past(logged_in: Client, owner: User) -> None:
    now = timezone.now()
    run = RunFactory.create(reminder__owner=owner, status="running", pending=1)
    target = RunTargetFactory.create(run=run)

    def shown(*, not_before: datetime, held_until: datetime | None) -> str:
        RunTarget.objects.update(not_before=not_before)
        Account.objects.filter(pk=target.account_id).update(held_until=held_until)
        return logged_in.get(url(run), {"status": "pending"}).content.decode()

    past, later = now - timedelta(minutes=5), now + timedelta(hours=30)
    assert "when it is its turn" in shown(not_before=past, held_until=None)
    for moments in ((later, past), (past, later)):
        page = shown(not_before=moments[0], held_until=moments[1])
        assert f"{later.astimezone(ZoneInfo(run.zone)):%H:%M}" in page
        assert "when it is its turn" not in page
    Run.objects.update(status="paused", pause_reason="operator")
    assert "when the run continues" in shown(not_before=past, held_until=later)
