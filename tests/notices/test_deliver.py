"""Notices are sent at least once, gathered, later where it fails, not in quiet hours, and never in a storm."""

from datetime import datetime, time, timedelta
from random import Random
from zoneinfo import ZoneInfo

import pytest
import time_machine
from django.utils import timezone
from pytest_django import Settings

from accounts.models import User
from activity.models import Notification
from notices import deliver, dispatch, manage, preferences
from notices.models import Notice, NoticeAddress, Preferences
from notices.outside.ask import Reply
from tests.factories import NoticeAddressFactory, NoticeFactory, OperatorFactory, PreferencesFactory
from tests.notices.services import Mailbox, Services

pytestmark = pytest.mark.django_db

RNG = Random(7)
SITE = "https://paceline.example"


def serve(address: NoticeAddress) -> bool:
    return deliver.serve(address.pk, rng=RNG)


def due_again() -> None:
    """Let the pauses pass."""
    Notice.objects.filter(state="pending").update(due_at=timezone.now())
    NoticeAddress.objects.update(retry_at=None)


@pytest.fixture
def mailed(owner: User) -> NoticeAddress:
    return NoticeAddressFactory.create(person=owner, mailbox=True)


def test_a_service_gets_the_notice_with_its_link(
    channel: NoticeAddress, chat: Services, settings: Settings
) -> None:
    settings.PUBLIC_URL = SITE
    NoticeFactory.create(address=channel, url="/reminders/7/")
    assert serve(channel)
    [body] = chat.messages()
    assert body["title"] == "Reminder paused"
    assert body["message"].split() == ["3", "of", "10", "groups", "delivered.", f"{SITE}/reminders/7/"]
    notice = Notice.objects.get()
    assert (notice.state, notice.attempts, notice.problem) == ("sent", 1, "")
    assert not serve(channel)


def test_a_mailbox_gets_a_mail_that_says_where_it_is_changed(
    mailed: NoticeAddress, mails: Mailbox, settings: Settings
) -> None:
    settings.PUBLIC_URL = SITE
    NoticeFactory.create(address=mailed, title="Reminder\npaused")
    assert serve(mailed)
    [mail] = mails.mails
    assert (mail["To"], mail["From"]) == ("ann@example.com", "paceline@example.com")
    assert mail["Subject"] == "Reminder paused"
    assert mail["Auto-Submitted"] == "auto-generated"
    assert mail.get_content().splitlines() == [
        "3 of 10 groups delivered.",
        "",
        f"What arrives here, and when: {SITE}/notifications/settings/",
    ]


def test_what_came_meanwhile_goes_in_one_message_in_its_order(
    channel: NoticeAddress, chat: Services, owner: User
) -> None:
    User.objects.filter(pk=owner.pk).update(zone="Asia/Kuala_Lumpur")
    for number in (2, 1, 3):
        happened = datetime(2026, 11, 19, 10, number, tzinfo=ZoneInfo("UTC"))
        NoticeFactory.create(address=channel, title=f"News {number}", happened_at=happened, number=number)
    assert serve(channel)
    [body] = chat.messages()
    assert body["title"] == "3 notifications"
    lines = body["message"].splitlines()
    assert [line for line in lines if "News" in line] == [f"19 Nov 18:0{n} News {n}" for n in (1, 2, 3)]
    assert "This happened 3 times; this is the newest." in lines


def test_what_fails_is_tried_again_under_the_same_name_and_the_page_says_why(
    mailed: NoticeAddress, mails: Mailbox
) -> None:
    NoticeFactory.create(address=mailed)
    mails.reply = "451 later"
    assert not serve(mailed)
    mailed.refresh_from_db()
    assert (mailed.failures, mailed.problem) == (1, "the mail server answered 451")
    assert mailed.retry_at is not None
    assert dispatch.take() == [], "it rests"
    name = Notice.objects.get().message
    NoticeFactory.create(address=mailed, title="Later news")
    mails.reply = "250 OK"
    due_again()
    assert serve(mailed)
    assert serve(mailed)
    first, second = mails.mails
    assert name is not None
    assert name.hex in first["Message-ID"]
    assert first["Message-ID"] != second["Message-ID"]
    assert "Later news" in second["Subject"]
    well = NoticeAddress.objects.get()
    assert (well.failures, well.problem, well.failing_since, well.retry_at) == (0, "", None, None)


def test_a_worker_that_dies_after_the_claim_leaves_it_to_be_sent_again_later(
    mailed: NoticeAddress, mails: Mailbox
) -> None:
    NoticeFactory.create_batch(3, address=mailed)
    claim = deliver._claim(mailed.pk, now=timezone.now(), rng=RNG)
    assert claim is not None
    NoticeFactory.create(address=mailed, title="Came meanwhile")
    again = Notice.objects.filter(message=claim.name).values_list("due_at", flat=True)
    assert min(again) >= timezone.now() + deliver.BUSY - timedelta(seconds=5), "not at once: no storm"
    due_again()
    assert serve(mailed)
    [mail] = mails.mails
    assert claim.name.hex in mail["Message-ID"]
    assert mail["Subject"] == "3 notifications"
    assert Notice.objects.get(state="pending").title == "Came meanwhile"


def test_a_worker_that_dies_again_and_again_tries_ever_more_rarely(channel: NoticeAddress) -> None:
    NoticeFactory.create(address=channel)
    now, tries = timezone.now(), 0
    end = now + timedelta(days=1)
    while now < end:
        if deliver._claim(channel.pk, now=now, rng=RNG) is not None:
            tries += 1
        now = Notice.objects.get().due_at
    assert tries < 20


def test_nothing_is_sent_in_quiet_hours_that_began_meanwhile(
    channel: NoticeAddress, chat: Services, owner: User
) -> None:
    User.objects.filter(pk=owner.pk).update(zone="Asia/Kuala_Lumpur")
    PreferencesFactory.create(person=owner, quiet=True)
    with time_machine.travel("2026-11-19 22:30+08:00", tick=False):
        NoticeFactory.create(address=channel)
        NoticeFactory.create(address=channel, attempts=1, message="00000000-0000-0000-0000-000000000001")
        assert not serve(channel)
        assert chat.requests == []
        assert not serve(channel)
    morning = datetime(2026, 11, 20, 7, tzinfo=ZoneInfo("Asia/Kuala_Lumpur"))
    assert set(Notice.objects.values_list("due_at", flat=True)) == {morning}


def test_a_test_goes_at_once_also_in_quiet_hours(channel: NoticeAddress, chat: Services, owner: User) -> None:
    now = timezone.now()
    PreferencesFactory.create(
        person=owner,
        quiet_from=(now - timedelta(hours=1)).time().replace(microsecond=0),
        quiet_until=(now + timedelta(hours=1)).time().replace(microsecond=0),
    )
    owner.zone = "UTC"
    owner.save()
    NoticeFactory.create(address=channel)
    manage.test(channel, by=owner)
    assert serve(channel)
    assert [body["title"] for body in chat.messages()] == ["A test of Paceline"]
    assert Notice.objects.get(state="pending").kind == "paused"


def test_a_test_that_fails_says_why_and_is_not_tried_again(
    channel: NoticeAddress, chat: Services, owner: User
) -> None:
    chat.status = 403
    manage.test(channel, by=owner)
    assert not serve(channel)
    test = Notice.objects.get()
    assert (test.state, test.problem) == ("given_up", "the service refuses the key in the address (403)")


def test_an_address_that_takes_nothing_for_three_days_is_switched_off_and_its_person_told(
    channel: NoticeAddress, chat: Services, owner: User
) -> None:
    chat.status = 500
    NoticeFactory.create(address=channel)
    serve(channel)
    NoticeAddress.objects.update(failing_since=timezone.now() - timedelta(days=3), retry_at=timezone.now())
    Notice.objects.update(due_at=timezone.now())
    serve(channel)
    channel.refresh_from_db()
    assert channel.switched_off_at is not None
    assert not Notice.objects.filter(state="pending").exists()
    made = Notification.objects.get(owner=owner, kind="webhook")
    assert "JSON at 127.0.0.1: nothing arrived for three days (the service answered 500)." in made.body


def test_one_failure_now_and_one_a_week_ago_are_no_three_days(channel: NoticeAddress, chat: Services) -> None:
    chat.status = 500
    week = timezone.now() - timedelta(days=7)
    NoticeAddress.objects.update(failing_since=week, failures=11, retry_at=week + timedelta(days=1))
    NoticeFactory.create(address=channel)
    serve(channel)
    channel.refresh_from_db()
    assert (channel.switched_off_at, channel.failures) == (None, 1)


def test_a_notice_that_is_a_day_old_is_given_up_where_it_fails(
    channel: NoticeAddress, chat: Services
) -> None:
    chat.status = 500
    NoticeFactory.create(address=channel, give_up_at=timezone.now())
    serve(channel)
    assert Notice.objects.get().state == "given_up"


def test_an_installation_without_a_mail_server_says_so(mailed: NoticeAddress, settings: Settings) -> None:
    settings.EMAIL_HOST = ""
    NoticeFactory.create(address=mailed)
    assert not serve(mailed)
    mailed.refresh_from_db()
    assert mailed.problem == "this installation has no mail server"


def test_a_mail_server_that_is_away_is_told_by_its_place(mailed: NoticeAddress, settings: Settings) -> None:
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", 9
    NoticeFactory.create(address=mailed)
    assert not serve(mailed)
    mailed.refresh_from_db()
    assert mailed.problem == "connection refused, 127.0.0.1:9"


def test_a_private_network_is_told_to_the_person(
    channel: NoticeAddress, chat: Services, settings: Settings
) -> None:
    settings.PRIVATE_NETWORKS = ["none"]
    NoticeFactory.create(address=channel)
    assert not serve(channel)
    channel.refresh_from_db()
    assert channel.problem == "the address leads to a private network, which this installation does not allow"
    assert chat.requests == []


def test_an_address_that_no_key_opens_is_told_and_breaks_nothing(channel: NoticeAddress) -> None:
    NoticeAddress.objects.filter(pk=channel.pk).update(address=NoOpened())
    NoticeFactory.create(address=channel)
    assert not serve(channel)
    channel.refresh_from_db()
    assert channel.problem == "the stored address cannot be read; delete it and add it again"


class NoOpened(dict[str, str]):
    """A stored secret without the address."""

    def __init__(self) -> None:
        super().__init__(other="x")


def test_each_person_has_one_place_and_all_together_a_few() -> None:
    greedy = OperatorFactory.create()
    for _ in range(5):
        NoticeFactory.create(address__person=greedy)
    others = [NoticeFactory.create().address.person for _ in range(2)]
    taken = NoticeAddress.objects.filter(pk__in=dispatch.take())
    assert sorted(address.person.pk for address in taken) == sorted([greedy.pk, *(one.pk for one in others)])
    assert dispatch.take() == []


def test_no_more_addresses_are_served_at_once_than_there_are_places() -> None:
    NoticeFactory.create_batch(dispatch.AT_ONCE * 2)
    assert len(dispatch.take()) == dispatch.AT_ONCE
    assert dispatch.take() == []
    NoticeAddress.objects.update(busy_until=timezone.now())
    assert len(dispatch.take()) == dispatch.AT_ONCE, "a worker that died gives its place back"


def test_an_address_that_is_deleted_while_it_is_served_breaks_nothing(
    channel: NoticeAddress, chat: Services
) -> None:
    NoticeFactory.create(address=channel)
    claim = deliver._claim(channel.pk, now=timezone.now(), rng=RNG)
    assert claim is not None
    channel.delete()
    deliver._write_down(0, claim, Reply(good=True), now=timezone.now(), rng=RNG)
    assert not serve(NoticeAddress(pk=0))


def test_the_log_is_kept_for_a_month() -> None:
    old = NoticeFactory.create(sent=True, ended_at=timezone.now() - timedelta(days=31))
    new, waiting = NoticeFactory.create(sent=True), NoticeFactory.create()
    assert dispatch.forget() == 1
    assert set(Notice.objects.all()) == {new, waiting}
    assert not Notice.objects.filter(pk=old.pk).exists()


def test_new_hours_hold_also_for_what_waits_already(channel: NoticeAddress, owner: User) -> None:
    far = timezone.now() + timedelta(hours=9)
    NoticeFactory.create(address=channel, due_at=far)
    wishes = preferences.Wishes(
        quiet_from=None, quiet_until=None, daily_at=time(8), escalate_minutes=None, next_people=[], follows=[]
    )
    preferences.save(owner, wishes)
    assert Notice.objects.get().due_at <= timezone.now()
    assert Preferences.objects.get().quiet_from is None
