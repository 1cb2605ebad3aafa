"""Live pages in a browser: what happens appears by itself, survives lost connections, and is for the right eyes."""

import re
import threading

import pytest
from django.db import connection
from django.utils import timezone
from playwright.sync_api import expect
from pytest_django import Settings
from redis import Redis

from accounts.models import Account, User
from delivery import lifecycle, live
from delivery.engine import pump, tick
from delivery.models import Run, RunTarget
from delivery.states import PauseReason, TargetStatus
from sandbox.process import SandboxProcess
from tests.browser.conftest import NewPage, watching
from tests.browser.site import Site
from tests.delivery.conftest import gateway, quick
from tests.delivery.stage import Stage, becomes, noon_zone
from tests.factories import ReminderFactory, RunFactory, RunTargetFactory

__all__ = ["gateway", "quick"]  # fixtures

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def address(site: Site, redis: Redis) -> str:
    return site.url


@pytest.fixture
def sockets() -> bool:
    return True


@pytest.fixture
def run(owner: User) -> Run:
    reminder = ReminderFactory.create(owner=owner, name="Rent is due")
    return RunFactory.create(reminder=reminder, sent=3, pending=7, targets=0)


def progressed(run: Run, **values: object) -> None:
    """Change the counters and announce it, as the engine does."""
    Run.objects.filter(pk=run.pk).update(**values)
    live.run_changed(run.pk, run.owner_id)


def worker(account: Account) -> threading.Thread:
    """The engine at work beside the browser, as a worker would be."""

    def work() -> None:
        try:
            pump.pump(account.pk)
        finally:
            connection.close()

    thread = threading.Thread(target=work)
    thread.start()
    return thread


@pytest.mark.parametrize("path", ["/", "/activity/"])
def test_progress_appears_without_reloading(new_page: NewPage, owner: User, run: Run, path: str) -> None:
    page = watching(new_page(user=owner), path)
    page.evaluate("window.sameDocument = true")
    place = page.locator(".progress [data-text=sent]").first
    expect(place).to_have_text("3")
    before = place.bounding_box()
    progressed(run, sent=5, failed=1, pending=4)
    expect(place).to_have_text("5")
    assert page.locator("[data-part=failed]").first.get_attribute("width") == "100"
    assert place.bounding_box() == before
    assert page.evaluate("window.sameDocument")


def test_a_run_is_watched_as_it_pauses_with_its_window_and_resumed_to_its_end(
    new_page: NewPage, redis: Redis, gateway: SandboxProcess, quick: Settings
) -> None:
    stage = Stage(gateway)
    account = stage.account()
    run = stage.fire(account, to=6, zone=noon_zone(), window_start_hour=6, window_end_hour=18, name="Rent")
    page = watching(new_page(user=stage.owner), "/")
    page.evaluate("window.sameDocument = true")
    expect(page.locator("#now-and-next")).to_contain_text("Rent")
    expect(page.locator("#decisions")).to_contain_text("Nothing to decide")

    becomes(run, TargetStatus.SENT, TargetStatus.SENT)
    Run.objects.filter(pk=run.pk).update(window_end_hour=12, closes_at=timezone.now())
    tick.tick()
    banner = page.locator("#decisions .banner")
    expect(banner).to_contain_text("2 of 6 people delivered")
    expect(banner).to_contain_text("Delivery window closed at 12:00")
    assert page.evaluate("window.sameDocument")

    Run.objects.filter(pk=run.pk).update(window_end_hour=18)
    banner.get_by_role("button", name="Resume").click()
    expect(page.get_by_role("status").filter(has_text="was resumed")).to_be_visible()
    thread = worker(account)
    expect(page.locator("#now-and-next")).to_contain_text("Nothing is being sent")
    thread.join()
    run.refresh_from_db()
    assert (run.status, run.sent) == ("success", 6)
    assert len(stage.delivered(account)) == 4


def test_a_stranger_sees_none_of_it(new_page: NewPage, owner: User, stranger: User, run: Run) -> None:
    page = new_page(user=stranger, troubled=True)
    page.goto("/activity/")
    expect(page.get_by_text("Rent is due")).to_have_count(0)
    refused = page.evaluate(
        """(path) => new Promise((done) => {
            const socket = new WebSocket(new URL(path, location.href.replace(/^http/, "ws")));
            socket.onopen = () => done("open");
            socket.onerror = () => done("refused");
        })""",
        f"/ws/runs/{run.pk}/",
    )
    assert refused == "refused"


def test_a_page_is_right_again_after_the_server_was_away(
    new_page: NewPage, owner: User, run: Run, site: Site
) -> None:
    page = watching(new_page(user=owner, troubled=True), "/activity/")
    site.stop()
    expect(page.locator("[data-live-state]")).to_have_text(re.compile("Not live"))
    Run.objects.filter(pk=run.pk).update(
        status="paused", pause_reason="operator", sent=4, pending=6, summary="Paused."
    )
    site.start()
    page.evaluate("window.dispatchEvent(new Event('online'))")
    expect(page.locator("[data-live-state]")).to_be_hidden()
    expect(page.locator("[data-run-status]")).to_have_text("Paused")
    expect(page.locator(".progress [data-text=sent]")).to_have_text("4")
    expect(page.get_by_role("button", name="Resume Rent is due")).to_be_visible()


def test_a_page_asks_now_and_then_where_sockets_are_blocked(new_page: NewPage, owner: User, run: Run) -> None:
    page = new_page(user=owner)
    page.route_web_socket(re.compile("/ws/"), lambda socket: socket.close(code=1011))
    page.goto("/activity/")
    progressed(run, sent=6, pending=4)
    expect(page.locator(".progress [data-text=sent]")).to_have_text("6")
    expect(page.locator("[data-live-state]")).to_have_text(re.compile("Looking again"))


def test_logging_out_elsewhere_ends_it_calmly(new_page: NewPage, owner: User, run: Run) -> None:
    page = watching(new_page(user=owner), "/activity/")
    other = page.context.new_page()
    other.goto("/")
    other.locator("summary").click()
    other.get_by_role("button", name="Log out").click()
    expect(page.locator("[data-live-state]")).to_have_text(re.compile("out of date"))


@pytest.mark.parametrize("path", ["/admin/delivery/run/", "/admin/delivery/run/{}/change/"])
def test_staff_watch_the_same_in_the_admin(new_page: NewPage, staff: User, run: Run, path: str) -> None:
    page = watching(new_page(user=staff), path.format(run.pk))
    progressed(run, sent=5, pending=5)
    expect(page.locator(".progress [data-text=sent]").first).to_have_text("5")
    progressed(run, status="paused", pause_reason="operator", summary="Held.")
    expect(page.locator("[data-run-status]").first).to_have_text("Paused")
    if "change" in path:
        expect(page.get_by_role("button", name="Resume")).to_be_visible()


def test_the_page_of_a_run_follows_it(new_page: NewPage, owner: User, run: Run) -> None:
    page = watching(new_page(user=owner), f"/runs/{run.pk}/")
    progressed(run, sent=5, pending=5)
    expect(page.locator(".progress [data-text=sent]").first).to_have_text("5")
    lifecycle.pause(Run.objects.get(pk=run.pk), reason=PauseReason.OPERATOR, by=owner)
    expect(page.get_by_role("region", name="Paused run")).to_contain_text("5 of 10")
    expect(page.get_by_role("button", name="Resume")).to_be_visible()


def test_the_targets_of_a_run_move_between_the_lists_while_it_goes_on(
    new_page: NewPage, owner: User, run: Run
) -> None:
    target = RunTargetFactory.create(run=run, recipient__name="Choir")
    page = watching(new_page(user=owner), f"/runs/{run.pk}/?status=pending")
    row = page.get_by_role("row", name="Choir")
    expect(row).to_be_visible()
    RunTarget.objects.filter(pk=target.pk).update(
        status=TargetStatus.SENDING, fence=1, claimed_at=timezone.now()
    )
    progressed(run, sending=1, pending=6)
    expect(row).to_have_count(0)
