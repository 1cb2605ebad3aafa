"""The last step: what will happen, what is wrong and where to mend it, and the button that says what it does."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
import time_machine
from django.test import Client
from django.urls import reverse
from pytest_django import DjangoAssertNumQueries
from redis import Redis

from accounts.models import User
from accounts.models.account import Channel
from delivery.audience import Audience
from delivery.models import Run
from reminders.forecast import forecast
from reminders.models import Reminder
from reminders.pages.wizard.checklist import button, day_and_hour
from reminders.pages.wizard.forecast_plot import draw
from tests.factories import (
    AccountDayFactory,
    AccountFactory,
    FollowUpStepFactory,
    LimitFactory,
    PartFactory,
    RecipientFactory,
    ReminderFactory,
)

NOON = datetime(2026, 3, 11, 12, tzinfo=UTC)


@pytest.fixture(autouse=True)
def at_noon() -> Any:
    with time_machine.travel(NOON, tick=False):
        yield


@pytest.fixture
def logged_in(client: Client, owner: User) -> Client:
    client.force_login(owner)
    return client


def url(reminder: Reminder, name: str = "review") -> str:
    return reverse(f"reminders:{name}", args=[reminder.pk])


def ready(owner: User, **values: Any) -> Reminder:
    account = AccountFactory.create(owner=owner, name="Office")
    people = RecipientFactory.create_batch(3, owner=owner, group=True)
    defaults = {"fire_at": NOON + timedelta(days=1), "accounts": [account], "recipients": people}
    return ReminderFactory.create(owner=owner, **defaults | values)


def test_the_button_says_what_it_will_do_and_does_it(logged_in: Client, owner: User) -> None:
    reminder = ready(owner)
    page = logged_in.get(url(reminder)).content.decode()
    assert "Schedule for 3 groups, tomorrow 12:00 UTC" in page
    assert "Fits in window" in page
    assert "<polyline" in page
    for _ in range(2):
        response = logged_in.post(url(reminder), {"do": "schedule"})
        assert response["Location"] == url(reminder, "page")
    reminder.refresh_from_db()
    assert (reminder.status, reminder.next_fire_at) == ("scheduled", reminder.fire_at)


def test_one_that_is_fired_by_hand_is_sent_once_however_often_the_button_is_pressed(
    logged_in: Client, owner: User, redis: Redis
) -> None:
    reminder = ready(owner, by_hand=True, fire_at=None)
    page = logged_in.get(url(reminder))
    assert "Send now to 3 groups" in page.content.decode()
    data = {"do": "send", "key": str(page.context["key"])}
    first, second = (logged_in.post(url(reminder), data) for _ in range(2))
    run = Run.objects.get()
    assert first["Location"] == second["Location"] == reverse("runs:page", args=[run.pk])
    assert run.total == 3


def test_a_second_button_while_a_run_is_going_sends_nothing(
    logged_in: Client, owner: User, redis: Redis
) -> None:
    reminder = ready(owner, by_hand=True, fire_at=None)
    for _ in range(2):
        response = logged_in.post(url(reminder), {"do": "send", "key": str(uuid4())}, follow=True)
    assert Run.objects.count() == 1
    assert "still running" in response.content.decode()


@pytest.mark.parametrize(
    ("values", "step", "why"),
    [
        ({"parts": 0}, "message", "There is no message yet"),
        ({"accounts": 0}, "recipients", "There is no account to send from"),
        ({"recipients": 0}, "recipients", "There are no recipients"),
        ({"fire_at": None}, "when", "There is no time yet"),
        ({"fire_at": NOON - timedelta(hours=1)}, "when", "is in the past"),
        ({"fire_at": NOON + timedelta(hours=9)}, "when", "after the delivery hours"),
        ({"channel": Channel.EMAIL, "action": "email"}, "message", "needs a subject"),
    ],
)
def test_a_problem_leads_to_the_step_that_mends_it_and_nothing_can_be_scheduled(
    logged_in: Client, owner: User, values: dict[str, Any], step: str, why: str
) -> None:
    reminder = ready(owner, **values)
    response = logged_in.get(url(reminder))
    points = [point for point in response.context["checklist"].points if why in " ".join(point.problems)]
    assert [point.url for point in points] == [url(reminder, step)]
    assert "Fix the points above" in response.content.decode()
    assert why in logged_in.post(url(reminder), {"do": "schedule"}, follow=True).content.decode()
    reminder.refresh_from_db()
    assert reminder.status == "draft"


def test_what_is_to_be_weighed_does_not_block(logged_in: Client, owner: User) -> None:
    account = AccountFactory.create(owner=owner, name="Old phone", flagged=True)
    page = logged_in.get(url(ready(owner, accounts=[account]))).content.decode()
    assert "Old phone is flagged" in page
    assert "Schedule for 3 groups" in page


def test_each_missing_variable_says_what_would_not_be_sent(logged_in: Client, owner: User) -> None:
    reminder = ready(owner, parts=0)
    PartFactory.create(reminder=reminder, text="{{ city }}")
    PartFactory.create(reminder=reminder, second=True, text="{{ city }}, {{ street }}")
    FollowUpStepFactory.create(reminder=reminder, text="{{ street }}, {{ due }}, {{ name }}")
    (message, *_) = logged_in.get(url(reminder)).context["checklist"].points
    *lacks, _too_many = message.warnings
    assert sorted(lacks) == [
        "{{ city }} is missing for 3 groups: they get nothing.",
        "{{ due }} is missing for 3 groups: they get no follow-up.",
        "{{ street }} is missing for 3 groups: they get no second message.",
    ]
    assert "People who do not reply get up to 1 follow-up." in message.facts


def lacking(owner: User, *cities: str, **values: Any) -> Reminder:
    """A reminder that asks for a city, to groups with these."""
    groups = [RecipientFactory.create(owner=owner, group=True, fields={"city": city}) for city in cities]
    reminder = ready(owner, recipients=groups, parts=0, **values)
    PartFactory.create(reminder=reminder, text="Hello {{ name }} of {{ city }}")
    return reminder


def test_going_ahead_without_those_who_lack_a_variable_is_a_choice(logged_in: Client, owner: User) -> None:
    reminder = lacking(owner, "Ipoh", "Ipoh", "Ipoh", "Ipoh", "")
    page = logged_in.get(url(reminder))
    (point,) = (point for point in page.context["checklist"].points if point.warnings)
    assert point.url == url(reminder, "message")
    assert point.warnings == ["{{ city }} is missing for 1 group: they get nothing."]
    assert "Schedule for 4 groups, tomorrow" in page.content.decode()
    refused = logged_in.post(url(reminder), {"do": "schedule"})
    assert "Tick this box" in refused.content.decode()
    reminder.refresh_from_db()
    assert reminder.status == "draft"
    logged_in.post(url(reminder), {"do": "schedule", "without": "1"})
    reminder.refresh_from_db()
    assert reminder.status == "scheduled"


def test_what_nobody_has_is_never_sent_at_once(logged_in: Client, owner: User, redis: Redis) -> None:
    reminder = lacking(owner, "", "", by_hand=True, fire_at=None)
    page = logged_in.get(url(reminder)).content.decode()
    assert "Too many would fail; the run would stop by itself." in page
    assert "Send now to" not in page
    answer = logged_in.post(url(reminder), {"do": "send", "without": "1"}, follow=True)
    assert "so nobody would get it" in answer.content.decode()
    assert not Run.objects.exists()


def test_what_is_sent_now_is_not_offered_once_the_delivery_hours_are_over(
    logged_in: Client, owner: User, redis: Redis
) -> None:
    reminder = ready(owner, by_hand=True, fire_at=None, scheduled=True, window_end_hour=11)
    for name, data in (("review", {"do": "send"}), ("fire", {})):
        page = logged_in.get(url(reminder, name)).content.decode()
        assert "ended at 11:00 UTC, so nothing would be sent now" in page
        assert "Send now to" not in page
        assert "nothing would be sent" in logged_in.post(url(reminder, name), data).content.decode()
    assert not Run.objects.exists()


def test_firing_without_those_who_lack_a_variable_is_a_choice_too(
    logged_in: Client, owner: User, redis: Redis
) -> None:
    reminder = lacking(owner, "Ipoh", "", by_hand=True, fire_at=None, scheduled=True)
    fire = url(reminder, "fire")
    assert "Send to 1 group" in logged_in.get(fire).content.decode()
    assert "Tick this box" in logged_in.post(fire, {"key": str(uuid4())}).content.decode()
    assert not Run.objects.exists()
    logged_in.post(fire, {"key": str(uuid4()), "without": "1"})
    assert Run.objects.get().pending == 2


def test_a_forecast_that_does_not_fit_says_what_helps(logged_in: Client, owner: User) -> None:
    account = AccountFactory.create(owner=owner)
    LimitFactory.create(account=account, per_minute=1, per_hour=1)
    reminder = ready(owner, accounts=[account], fire_at=NOON + timedelta(hours=5))
    page = logged_in.get(url(reminder)).content.decode()
    assert "Likely to pause" in page
    assert 'class="note"' in page
    assert "Schedule for 3 groups, today 17:00 UTC" in page


@pytest.mark.parametrize(
    ("moment", "words"),
    [
        (NOON + timedelta(hours=1), "today 13:00"),
        (NOON + timedelta(days=1), "tomorrow 12:00"),
        (NOON + timedelta(days=9), "Friday 20 March 12:00"),
        (NOON + timedelta(days=365), "Thursday 11 March 2027 12:00"),
    ],
)
def test_a_day_is_said_as_people_say_it(moment: datetime, words: str) -> None:
    assert day_and_hour(moment, "UTC", NOON) == words


def test_what_repeats_says_when_it_is_first() -> None:
    reminder = Reminder(schedule="cron", zone="Asia/Kuala_Lumpur")
    reached = Audience(kinds={"group": 1000}, refused={})
    label = button(reminder, reached, datetime(2026, 3, 12, 1, tzinfo=UTC), now=NOON)
    assert label == "Schedule for 1,000 groups, first tomorrow 09:00 Asia/Kuala_Lumpur"
    assert button(Reminder(schedule="by_hand"), reached, None, now=NOON) == "Save, send later"


def test_the_drawing_spans_the_window_and_climbs_to_the_top(owner: User) -> None:
    reminder = ready(owner)
    drawn = draw(forecast(reminder, now=NOON, fires_at=reminder.fire_at))
    assert drawn is not None
    assert (drawn.starts, drawn.middle, drawn.ends, drawn.most) == ("06:00", "12:00", "18:00", 3)
    assert [(band.x, band.width) for band in drawn.climb.bands] == [(0.0, 720.0)]
    assert drawn.climb.line.endswith("720.0,0.0")
    reminder.recipients.clear()
    assert draw(forecast(reminder, now=NOON, fires_at=reminder.fire_at)) is None


def test_hours_around_the_clock_are_drawn_to_the_end_of_the_day(owner: User) -> None:
    reminder = ready(owner)
    Reminder.objects.filter(pk=reminder.pk).update(window_start_hour=0, window_end_hour=24)
    reminder.refresh_from_db()
    drawn = draw(forecast(reminder, now=NOON, fires_at=reminder.fire_at))
    assert drawn is not None
    assert (drawn.starts, drawn.middle, drawn.ends) == ("00:00", "12:00", "00:00")


def test_a_run_over_days_has_a_band_for_each(owner: User) -> None:
    account = AccountFactory.create(owner=owner)
    LimitFactory.create(account=account, per_day=1)
    drawn = draw(forecast(ready(owner, accounts=[account]), now=NOON, fires_at=NOON))
    assert drawn is not None
    assert len(drawn.climb.bands) == 3
    assert drawn.starts == "Wed 11 Mar, 06:00"


def test_new_people_have_a_line_of_their_own(owner: User) -> None:
    account = AccountFactory.create(owner=owner)
    LimitFactory.create(account=account, new_per_day=1)
    to = [*RecipientFactory.create_batch(2, owner=owner), RecipientFactory.create(owner=owner, group=True)]
    reminder = ready(owner, accounts=[account], recipients=to)
    drawn = draw(forecast(reminder, now=NOON, fires_at=NOON))
    assert drawn is not None
    assert drawn.climb.line.split()[-1].endswith(",0.0")
    assert drawn.people.split()[-1].endswith(f",{round(160 / 3, 2)}")  # two of the three
    account.limits.update(new_per_day=None)
    drawn = draw(forecast(reminder, now=NOON, fires_at=NOON))
    assert drawn is not None
    assert drawn.people == ""


def test_the_page_takes_as_many_queries_for_many_recipients(
    logged_in: Client, owner: User, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    accounts = AccountFactory.create_batch(4, owner=owner)
    people = RecipientFactory.create_batch(40, owner=owner)
    reminder = ready(owner, accounts=accounts, recipients=people, parts=3)
    with django_assert_max_num_queries(33):
        logged_in.get(url(reminder))


def warned(owner: User, client: Client, *, group: bool = False, profile: str = "", **values: Any) -> str:
    """Return the warning about the same text to 60 recipients; empty if there is none."""
    account = AccountFactory.create(owner=owner, **({"profile": profile} if profile else {}))
    people = RecipientFactory.create_batch(60, owner=owner, group=group, fields=values.pop("fields", {}))
    reminder = ReminderFactory.create(owner=owner, accounts=[account], recipients=people, parts=0)
    PartFactory.create(reminder=reminder, **values)
    page = client.get(url(reminder)).content.decode()
    found = re.search(r"[^>]*nearly the same text[^<]*", page)
    return found[0].strip() if found else ""


def test_review_warns_where_many_people_would_get_the_same_text(logged_in: Client, owner: User) -> None:
    text = "{{ name }}, the water is turned off on Friday from nine to eleven. Keep some water in bottles."
    assert "All 60 people" in warned(owner, logged_in, text=text)
    choice = (
        "{Hi|Hello} {{ name }}, the water is turned off on Friday from nine to eleven. Keep some in bottles."
    )
    assert "All 60 people" in warned(owner, logged_in, text=choice, other_wordings=[])


def test_review_does_not_warn_about_groups_newsletters_and_texts_that_differ(
    logged_in: Client, owner: User
) -> None:
    text = "The water is turned off on Friday."
    assert warned(owner, logged_in, text=text, group=True) == ""
    assert warned(owner, logged_in, text=text, profile="email_newsletter") == ""
    others = ["On Friday from nine there is no water.", "Please note: no water in the pipes this Friday."]
    assert warned(owner, logged_in, text=text, other_wordings=others) == ""


def test_a_warning_about_the_same_text_stops_nothing(logged_in: Client, owner: User) -> None:
    people = RecipientFactory.create_batch(60, owner=owner)
    reminder = ready(owner, recipients=people)
    assert "nearly the same text" in logged_in.get(url(reminder)).content.decode()
    logged_in.post(url(reminder), {"do": "schedule"})
    reminder.refresh_from_db()
    assert reminder.status == Reminder.Status.SCHEDULED


@pytest.mark.parametrize(
    ("sent", "returned", "said"),
    [
        (40, 20, ""),  # too few messages to tell
        (100, 4, ""),
        (100, 6, "Office is near the limit of its health: 6 of 100 messages failed or came back"),
    ],
)
def test_it_warns_of_an_account_that_is_near_the_limit_of_its_health(
    logged_in: Client, owner: User, sent: int, returned: int, said: str
) -> None:
    reminder = ready(owner)
    AccountDayFactory.create(account=reminder.accounts.get(), day=NOON.date(), sent=sent, returned=returned)
    page = logged_in.get(url(reminder)).content.decode()
    assert ("limit of its health" in page) is bool(said)
    assert said in page


def test_it_warns_of_an_account_that_is_slowed_down_for_its_health(logged_in: Client, owner: User) -> None:
    reminder = ready(owner)
    reminder.accounts.update(health="slow")
    AccountDayFactory.create(account=reminder.accounts.get(), day=NOON.date(), sent=100, returned=12)
    assert (
        "Office sends more slowly for its health: 12 of 100" in logged_in.get(url(reminder)).content.decode()
    )


def test_an_undeliverable_recipient_is_excluded_with_the_reason(logged_in: Client, owner: User) -> None:
    people = [RecipientFactory.create(owner=owner), RecipientFactory.create(owner=owner, undeliverable=True)]
    reminder = ready(owner, recipients=people)
    assert "1 excluded: 1 undeliverable" in logged_in.get(url(reminder)).content.decode()
