"""Logging in, passkeys, invitations and one's own page, in a real browser with an authenticator of its own."""

import re

import pytest
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from allauth.mfa.totp.internal.auth import TOTP
from playwright.sync_api import Page, expect
from redis import Redis

from accounts.models import Role, User
from people import team
from tests.browser.conftest import NewPage, Scheme
from tests.browser.test_look import axe_findings, sideways
from tests.factories import OperatorFactory, TeamMateFactory

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("redis")]
PASSWORD = "a-Long-pass-9"


@pytest.fixture
def address(live_server: object) -> str:
    """Return an address by name: passkeys need a domain, and browsers trust localhost."""
    return str(live_server.url).replace("127.0.0.1", "localhost")  # type: ignore[attr-defined]


@pytest.fixture
def anna(redis: Redis) -> User:
    person = OperatorFactory.create(username="anna", email="anna@example.com")
    person.set_password(PASSWORD)
    person.save()
    return person


def with_authenticator(page: Page) -> Page:
    """Give the browser a device that holds passkeys and knows its user."""
    session = page.context.new_cdp_session(page)
    session.send("WebAuthn.enable")
    options = {
        "protocol": "ctap2",
        "transport": "internal",
        "hasResidentKey": True,
        "hasUserVerification": True,
        "isUserVerified": True,
        "automaticPresenceSimulation": True,
    }
    session.send("WebAuthn.addVirtualAuthenticator", {"options": options})
    return page


def enter(page: Page) -> None:
    page.goto("/login/")
    page.get_by_label("Username").fill("anna")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Log in", exact=True).click()


def test_a_passkey_is_added_and_logs_in_alone(new_page: NewPage, anna: User) -> None:
    page = with_authenticator(new_page())
    enter(page)
    page.goto("/me/passkeys/add/")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Confirm").click()
    page.get_by_label("Passwordless").check()
    page.get_by_role("button", name="Add a passkey").click()
    expect(page.get_by_role("heading", name="Recovery codes")).to_be_visible()
    page.context.clear_cookies()
    page.goto("/login/")
    page.get_by_role("button", name="Log in with a passkey").click()
    expect(page.get_by_text("Menu of")).to_be_attached()


def test_a_passkey_is_the_second_step_after_the_password(new_page: NewPage, anna: User) -> None:
    page = with_authenticator(new_page())
    enter(page)
    page.goto("/me/passkeys/add/")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Confirm").click()
    page.get_by_role("button", name="Add a passkey").click()
    expect(page.get_by_role("heading", name="Recovery codes")).to_be_visible()
    page.context.clear_cookies()
    enter(page)
    expect(page.get_by_role("heading", name="One more step")).to_be_visible()
    page.get_by_role("button", name="Use a passkey").click()
    expect(page.get_by_text("Menu of")).to_be_attached()


def test_a_recovery_code_replaces_a_lost_phone(new_page: NewPage, anna: User) -> None:
    TOTP.activate(anna, "JBSWY3DPEHPK3PXP")
    code = RecoveryCodes.activate(anna).get_unused_codes()[0]
    page = new_page()
    enter(page)
    page.get_by_label("Code").fill(code)
    page.get_by_role("button", name="Log in", exact=True).click()
    expect(page.get_by_text("Menu of")).to_be_attached()


def test_an_invitation_becomes_a_member(new_page: NewPage, anna: User) -> None:
    page = new_page(user=anna)
    page.goto("/team/")
    page.get_by_label("E-mail").fill("ben@example.com")
    page.get_by_label("Role", exact=True).select_option("write")
    page.get_by_role("button", name="Invite").click()
    link = re.search(r"/join/\S+", page.locator("#new-key").inner_text())
    assert link is not None
    other = new_page()
    other.goto(link[0])
    other.get_by_label("Username").fill("ben")
    other.get_by_label("Password", exact=True).fill(PASSWORD)
    other.get_by_label("Password confirmation").fill(PASSWORD)
    other.get_by_role("button", name="Make my account and join").click()
    expect(other.get_by_text("Welcome to the team of anna")).to_be_visible()
    page.goto("/team/")
    expect(page.get_by_label("Role of ben")).to_have_value("write")


@pytest.mark.parametrize("width", [360, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_pages_are_accessible_and_fit(new_page: NewPage, anna: User, width: int, scheme: Scheme) -> None:
    TeamMateFactory.create(owner=anna, send=True, mate__username="carla")
    TeamMateFactory.create(mate=anna, manage=True, owner__username="dora")
    token = team.invite(anna, email="ben@example.com", role=Role.SEND, days=7, by=anna).token
    page, problems = new_page(user=anna, width=width, scheme=scheme, axe=True), []
    # An invitation that has ended is answered with 410, which the console notes.
    stranger = new_page(width=width, scheme=scheme, axe=True, troubled=True)
    own = ("me/", "team/", "team/hand-over/", "me/confirm/", "me/second-factor/", "me/passkeys/")
    open_to_all = ("login/", "login/forgotten/", f"join/{token}/", "join/none/")
    for each, addresses in ((page, own), (stranger, open_to_all)):
        for where in addresses:
            each.goto(f"/{where}")
            problems += [f"{where}: {found}" for found in axe_findings(each)]
            problems += [f"{where} is too wide"] if sideways(each) else []
    assert problems == []
