"""Logging in with a second factor, a new password by mail, sessions, and what an attacker would try."""

import re
from collections.abc import Mapping

import pytest
from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from allauth.mfa.totp.internal.auth import TOTP, format_hotp_value, hotp_value, yield_hotp_counters_from_time
from django.core import mail
from django.core.exceptions import PermissionDenied
from django.test import Client
from django.urls import reverse
from pytest_django import Settings
from redis import Redis

from accounts.models import User
from audit.models import Entry
from people import second_factor
from people.sessions import sessions_of
from tests.factories import OperatorFactory, StaffFactory

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("redis")]
PASSWORD = "a-Long-pass-9"
SECRET = "JBSWY3DPEHPK3PXP"


@pytest.fixture
def person(redis: Redis) -> User:
    person = OperatorFactory.create(username="anna", email="anna@example.com")
    person.set_password(PASSWORD)
    person.save()
    return person


@pytest.fixture
def with_app(person: User) -> User:
    TOTP.activate(person, SECRET)
    RecoveryCodes.activate(person)
    return person


@pytest.fixture
def mails(settings: Settings) -> None:
    settings.EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
    settings.EMAIL_HOST, settings.DEFAULT_FROM_EMAIL = "mail.example.com", "paceline@example.com"
    settings.PUBLIC_URL = "https://paceline.example.com"


@pytest.fixture
def sent_at_once(
    mails: None, monkeypatch: pytest.MonkeyPatch, django_capture_on_commit_callbacks: object
) -> None:
    """Send by the task itself, in this process."""
    from people import mails as module  # noqa: PLC0415
    from people.tasks import send  # noqa: PLC0415

    monkeypatch.setattr(module, "send_later", lambda *, to, subject, text: send(to, subject, text))


def code() -> str:
    return str(format_hotp_value(hotp_value(SECRET, next(iter(yield_hotp_counters_from_time())))))


def enter(client: Client, password: str = PASSWORD, **more: str) -> Mapping[str, object]:
    return client.post(reverse("login"), {"username": "anna", "password": password, **more})  # type: ignore[return-value]


def confirm(client: Client, password: str = PASSWORD) -> None:
    client.post(reverse("account_reauthenticate"), {"password": password})


def is_in(client: Client) -> bool:
    return client.get(reverse("reminders:list")).status_code == 200


def test_without_a_second_factor_the_password_is_enough(client: Client, person: User) -> None:
    assert enter(client, next="/reminders/")["Location"] == "/reminders/"
    assert is_in(client)


@pytest.mark.parametrize(
    "elsewhere", ["https://evil.example/", "//evil.example", "javascript:alert(1)", "/\\evil"]
)
def test_nobody_is_sent_elsewhere_after_logging_in(client: Client, person: User, elsewhere: str) -> None:
    assert enter(client, next=elsewhere)["Location"] == reverse("dashboard")


def test_with_an_app_the_code_is_asked_for_and_nothing_is_open_before(client: Client, with_app: User) -> None:
    assert enter(client, next="/reminders/")["Location"] == reverse("mfa_authenticate")
    assert not is_in(client)
    for name in ("people:me", "api_keys:list", "admin:index", "mfa_index", "account_change_password"):
        assert client.get(reverse(name)).status_code == 302
    answer = client.post(reverse("mfa_authenticate"), {"code": code()})
    assert answer["Location"] == "/reminders/"
    assert is_in(client)


def test_a_recovery_code_works_once(with_app: User) -> None:
    recovery = Authenticator.objects.get(user=with_app, type="recovery_codes").wrap().get_unused_codes()[0]
    for works in (True, False):
        client = Client()
        enter(client)
        client.post(reverse("mfa_authenticate"), {"code": recovery})
        assert is_in(client) is works


def test_codes_cannot_be_tried_out(client: Client, with_app: User, settings: Settings) -> None:
    enter(client)
    for _ in range(settings.AXES_FAILURE_LIMIT):
        client.post(reverse("mfa_authenticate"), {"code": "000000"})
    text = client.post(reverse("mfa_authenticate"), {"code": code()}).content.decode()
    assert "Too many wrong codes" in text or "locked" in text.lower()
    assert not is_in(client)


def test_the_admin_has_no_login_of_its_own(client: Client, redis: Redis) -> None:
    boss = StaffFactory.create(username="anna", is_superuser=True)
    boss.set_password(PASSWORD)
    boss.save()
    TOTP.activate(boss, SECRET)
    assert client.get("/admin/")["Location"].startswith("/admin/login/")
    assert client.post("/admin/login/", {"username": "anna", "password": PASSWORD})["Location"].startswith(
        "/login/"
    )
    enter(client)
    assert client.get("/admin/").status_code == 302


def test_the_session_key_changes_when_somebody_logs_in(client: Client, with_app: User) -> None:
    client.get(reverse("login"))
    enter(client)
    before = client.session.session_key
    client.post(reverse("mfa_authenticate"), {"code": code()})
    assert client.session.session_key != before


def test_secrets_are_stored_encrypted(with_app: User) -> None:
    assert SECRET not in str(list(Authenticator.objects.values()))


class TestPasswordReset:
    def link(self) -> str:
        (found,) = re.findall(
            r"https://paceline\.example\.com(/login/password/\S+)", str(mail.outbox[-1].body)
        )
        return str(found)

    def test_a_link_by_mail_leads_to_a_new_password_and_not_past_the_second_factor(
        self, client: Client, with_app: User, sent_at_once: None
    ) -> None:
        client.post(reverse("account_reset_password"), {"email": "anna@example.com"}, HTTP_HOST="testserver")
        link = self.link()
        form = client.get(link, follow=True)
        where = form.redirect_chain[-1][0]
        client.post(where, {"password1": "another-Pass-7", "password2": "another-Pass-7"})
        assert not is_in(client)
        assert enter(client, "another-Pass-7")["Location"] == reverse("mfa_authenticate")
        assert "no longer works" in Client().get(link, follow=True).content.decode()

    def test_the_host_of_a_request_is_never_in_a_mail(
        self, client: Client, person: User, sent_at_once: None
    ) -> None:
        client.post(
            reverse("account_reset_password"),
            {"email": "anna@example.com"},
            HTTP_X_FORWARDED_HOST="evil.example",
        )
        assert "evil" not in str(mail.outbox[-1].message())
        assert client.post(reverse("account_reset_password"), HTTP_HOST="evil.example").status_code == 400

    def test_an_unknown_e_mail_gets_the_same_answer_and_no_mail(
        self, client: Client, person: User, sent_at_once: None
    ) -> None:
        known = client.post(reverse("account_reset_password"), {"email": "anna@example.com"})
        assert len(mail.outbox) == 1
        unknown = Client().post(reverse("account_reset_password"), {"email": "nobody@example.com"})
        assert (known.status_code, known["Location"]) == (unknown.status_code, unknown["Location"])
        assert len(mail.outbox) == 1

    def test_without_mail_the_page_says_so(self, client: Client) -> None:
        assert "Mail is not set up here" in client.get(reverse("account_reset_password")).content.decode()

    def test_a_superuser_makes_a_link_and_others_do_not(
        self, client: Client, person: User, staff: User
    ) -> None:
        address = reverse("people:recover", args=[person.pk])
        client.force_login(staff)
        assert client.post(address, {"do": "link"}).status_code == 403
        client.force_login(User.objects.create_superuser("boss"))
        text = client.post(address, {"do": "link"}).content.decode()
        link = re.search(r"http://testserver(/login/password/[^<]+)", text)
        assert link is not None
        fresh = Client()
        where = fresh.get(link[1], follow=True).redirect_chain[-1][0]
        fresh.post(where, {"password1": "another-Pass-7", "password2": "another-Pass-7"})
        person.refresh_from_db()
        assert person.check_password("another-Pass-7")


def test_a_superuser_takes_a_lost_factor_off_and_the_person_is_logged_out(
    with_app: User, staff: User
) -> None:
    client = Client()
    enter(client)
    client.post(reverse("mfa_authenticate"), {"code": code()})
    with pytest.raises(PermissionDenied, match="Only a superuser"):
        second_factor.reset(with_app, by=staff)
    second_factor.reset(with_app, by=User.objects.create_superuser("boss"))
    assert not second_factor.has(with_app)
    assert not is_in(client)


def test_whoever_removes_the_second_factor_is_recorded(client: Client, with_app: User) -> None:
    enter(client)
    client.post(reverse("mfa_authenticate"), {"code": code()})
    confirm(client)
    client.post(reverse("mfa_deactivate_totp"))
    assert not second_factor.has(with_app)
    entries = Entry.objects.filter(action="person.two_factor", actor=with_app).order_by("pk")
    notes = ["TOTP Authenticator: removed", "Recovery codes: removed"]
    assert list(entries.values_list("note", flat=True)) == notes


class TestRequired:
    def test_who_has_none_is_led_to_it(self, client: Client, person: User, settings: Settings) -> None:
        enter(client)
        settings.REQUIRE_MFA = "everybody"
        for name in ("reminders:list", "api_keys:list", "people:team"):
            assert client.get(reverse(name))["Location"] == reverse("people:me")
        assert "asks everybody for a second factor" in client.get(reverse("people:me")).content.decode()

    def test_staff_alone_if_it_says_so(
        self, client: Client, person: User, staff: User, settings: Settings
    ) -> None:
        settings.REQUIRE_MFA = "staff"
        client.force_login(person)
        assert is_in(client)
        client.force_login(staff)
        assert not is_in(client)

    def test_who_has_one_goes_on(self, client: Client, with_app: User, settings: Settings) -> None:
        settings.REQUIRE_MFA = "everybody"
        client.force_login(with_app)
        assert is_in(client)


class TestMyPage:
    def test_name_zone_and_country_are_saved(self, client: Client, person: User) -> None:
        client.force_login(person)
        given = {"first_name": "Anna", "last_name": "Bo", "zone": "Asia/Kuala_Lumpur", "region": "my"}
        assert client.post(reverse("people:me"), given).status_code == 302
        person.refresh_from_db()
        assert (person.first_name, person.zone, person.region) == ("Anna", "Asia/Kuala_Lumpur", "MY")
        wrong = client.post(reverse("people:me"), given | {"zone": "Mars/Base"})
        assert "is not a time zone" in wrong.content.decode()

    def test_nobody_makes_themselves_staff(self, client: Client, person: User) -> None:
        client.force_login(person)
        client.post(
            reverse("people:me"), {"zone": "UTC", "is_staff": "on", "is_superuser": "on", "username": "root"}
        )
        person.refresh_from_db()
        assert (person.is_staff, person.is_superuser, person.username) == (False, False, "anna")

    def test_log_out_everywhere_ends_every_session(self, person: User) -> None:
        clients = [Client(), Client(), Client()]
        for client in clients:
            enter(client)
        assert len(sessions_of(person)) == 3
        clients[0].post(reverse("people:end_sessions"))
        assert [is_in(client) for client in clients] == [False, False, False]

    def test_a_new_password_ends_the_other_sessions(self, person: User) -> None:
        here, there = Client(), Client()
        enter(here)
        enter(there)
        given = {"oldpassword": PASSWORD, "password1": "another-Pass-7", "password2": "another-Pass-7"}
        assert here.post(reverse("account_change_password"), given)["Location"] == reverse("people:me")
        assert (is_in(here), is_in(there)) == (True, False)

    def test_an_e_mail_is_changed_when_it_is_confirmed(
        self, client: Client, person: User, sent_at_once: None
    ) -> None:
        enter(client)
        confirm(client)
        client.post(reverse("people:email"), {"email": "new@example.com"})
        person.refresh_from_db()
        assert person.email == "anna@example.com"
        (path,) = re.findall(r"https://paceline\.example\.com(/me/email/\S+)", str(mail.outbox[-1].body))
        client.get(path)
        person.refresh_from_db()
        assert person.email == "anna@example.com"
        client.post(path)
        person.refresh_from_db()
        assert person.email == "new@example.com"
        assert mail.outbox[-1].to == ["anna@example.com"]
        client.post(path)
        assert len(mail.outbox) == 2

    def test_a_second_factor_is_added_after_the_password_and_brings_recovery_codes(
        self, client: Client, person: User
    ) -> None:
        client.force_login(person)
        asked = client.get(reverse("mfa_activate_totp"))
        assert asked["Location"].startswith(reverse("account_reauthenticate"))
        confirm(client)
        text = client.get(reverse("mfa_activate_totp")).content.decode()
        secret = re.search(r"<code>([A-Z2-7]{16,})</code>", text)
        assert secret is not None
        counter = next(iter(yield_hotp_counters_from_time()))
        typed = str(format_hotp_value(hotp_value(secret[1], counter)))
        answer = client.post(reverse("mfa_activate_totp"), {"code": typed}, follow=True)
        assert "Each logs you in once" in answer.content.decode()
        assert second_factor.has(person)
