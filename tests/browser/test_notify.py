"""Notifications in a real browser: asked for by a button, shown by the page, and pushed into the service worker."""

import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from playwright.sync_api import Page, Worker, expect
from redis import Redis

from accounts.models import User
from activity import push
from activity.models import Notification
from delivery import lifecycle, notifications
from delivery.models import Run
from delivery.states import PauseReason
from tests.browser.conftest import PATIENCE, NewPage, watching
from tests.browser.site import Site
from tests.factories import ReminderFactory, RunFactory

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

SHOWN = """async () => {
    const worker = await navigator.serviceWorker.getRegistration();
    const notifications = await worker.getNotifications();
    return notifications.map(({ title, body, tag, actions, data }) => ({ title, body, tag, actions, url: data.url }));
}"""
LOST_AFTER = 3  # seconds; a push that is only late must not come back after its button was pressed
PRESS = """async (action) => {
    const [notification] = await self.registration.getNotifications();
    const event = new NotificationEvent("notificationclick", { notification, action });
    const done = new Promise((resolve) => { event.waitUntil = resolve; });
    self.dispatchEvent(event);
    await (await done);
}"""


@pytest.fixture
def address(site: Site, redis: Redis) -> str:
    return site.url


@pytest.fixture
def sockets() -> bool:
    return True


@pytest.fixture
def run(owner: User) -> Run:
    return RunFactory.create(reminder=ReminderFactory.create(owner=owner), sent=3, targets=7)


def allowed(page: Page) -> Page:
    """The person has pressed the button, and the browser said yes."""
    page.context.grant_permissions(["notifications"])
    watching(page, "/notifications/")
    page.get_by_role("button", name="Notify me in this browser").click()
    expect(page.get_by_text("This browser notifies you")).to_be_visible()
    page.evaluate("navigator.serviceWorker.ready.then(() => true)")
    return page


def shown(page: Page, *, within: int = PATIENCE) -> list[dict[str, Any]]:
    """Wait until the browser shows a notification, and return it."""
    found: list[dict[str, Any]] = soon(page, lambda: page.evaluate(SHOWN), within=within)
    return found


def soon(page: Page, look: Callable[[], Any], *, within: int = PATIENCE) -> Any:
    """Look until there is something to see, and return it."""
    for _ in range(within * 20):
        if found := look():
            return found
        page.wait_for_timeout(50)
    raise AssertionError("Nothing appeared.")


def worker_of(page: Page) -> Worker:
    [worker] = page.context.service_workers
    return worker


def delivered(page: Page, site: Site, content: object) -> list[dict[str, Any]]:
    """Deliver a push as its push service would, and return what the browser shows.

    One that arrives while the browser looks for a newer service worker is lost, so it is delivered again.
    """
    session = page.context.new_cdp_session(page)
    seen: list[str] = []
    session.on(
        "ServiceWorker.workerRegistrationUpdated",
        lambda event: seen.extend(each["registrationId"] for each in event["registrations"]),
    )
    session.send("ServiceWorker.enable")
    registration = soon(page, lambda: seen[:1])[0]
    message = {"origin": site.url, "registrationId": registration, "data": json.dumps(content)}
    for _ in range(PATIENCE):
        session.send("ServiceWorker.deliverPushMessage", message)
        with suppress(AssertionError):
            return shown(page, within=LOST_AFTER)
    return shown(page)


def test_nothing_is_asked_when_a_page_is_opened(new_page: NewPage, owner: User) -> None:
    page = new_page(user=owner)
    page.add_init_script("window.asked = 0; Notification.requestPermission = async () => (window.asked += 1)")
    for path in ("/", "/notifications/"):
        page.goto(path)
        page.wait_for_load_state("networkidle")
        assert page.evaluate("window.asked") == 0


def test_an_open_page_shows_a_pause_and_the_bell_counts_it(new_page: NewPage, owner: User, run: Run) -> None:
    page = allowed(new_page(user=owner))
    lifecycle.pause(run, reason=PauseReason.WINDOW_CLOSED)
    expect(page.locator("[data-unread]")).to_have_text("1")
    [told] = shown(page)
    assert (told["title"], told["body"]) == (
        "Reminder paused",
        f"{run.name}: 3 of 10 people delivered. Tap to resume or cancel.",
    )
    assert told["url"] == f"/reminders/{run.reminder_id}/"


def test_two_open_pages_show_it_once(new_page: NewPage, owner: User, run: Run) -> None:
    page = allowed(new_page(user=owner))
    other = page.context.new_page()
    other.goto("/")
    other.wait_for_load_state("networkidle")
    lifecycle.pause(run, reason=PauseReason.WINDOW_CLOSED)
    for each in (page, other):
        expect(each.locator("[data-unread]")).to_have_text("1")
    assert len(shown(page)) == 1


def test_without_permission_nothing_is_shown(new_page: NewPage, owner: User, run: Run) -> None:
    page = new_page(user=owner)
    page.goto("/notifications/")
    lifecycle.pause(run, reason=PauseReason.WINDOW_CLOSED)
    expect(page.locator("[data-unread]")).to_have_text("1")
    assert page.evaluate("navigator.serviceWorker.getRegistration().then((worker) => !worker)")


@pytest.mark.parametrize(
    ("presses", "status"), [(["resume"], {"running", "queued"}), (["cancel", "confirm"], {"partial"})]
)
def test_a_push_has_buttons_that_work_without_a_page(
    new_page: NewPage, owner: User, run: Run, site: Site, presses: list[str], status: set[str]
) -> None:
    page = allowed(new_page(user=owner, troubled=True))
    page.goto("/healthz")  # no page of ours hears of it
    paused = lifecycle.pause(run, reason=PauseReason.WINDOW_CLOSED)
    notifications.run_changed(paused)
    [told] = delivered(page, site, push.content(Notification.objects.get()))
    assert told["title"] == "Reminder paused"
    assert [button["title"] for button in told["actions"]] == ["Resume", "Cancel"]
    page.context.clear_cookies()
    for action in presses:
        run.refresh_from_db()
        assert run.status == "paused", "cancel asks first"
        worker_of(page).evaluate(PRESS, action)
    run.refresh_from_db()
    assert run.status in status
    [answer] = shown(page)
    assert answer["title"] == run.name


def test_stopping_forgets_the_service_worker(new_page: NewPage, owner: User) -> None:
    page = allowed(new_page(user=owner))
    page.get_by_role("button", name="Stop").click()
    expect(page.get_by_role("button", name="Notify me in this browser")).to_be_visible()
    assert page.evaluate("navigator.serviceWorker.getRegistration().then((worker) => !worker)")
