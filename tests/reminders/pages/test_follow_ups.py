"""The page of the queue, the steps of a reminder, and what they show to whom."""

import pytest
from django.test import Client
from pytest_django import Settings
from pytest_django.asserts import assertContains, assertNotContains, assertRedirects

from accounts.models import User
from reminders.follow_ups import sending
from reminders.models import FollowUp, FollowUpStep, Reminder
from tests.factories import (
    FollowUpFactory,
    FollowUpStepFactory,
    OperatorFactory,
    RecipientFactory,
    ReminderFactory,
    RunFactory,
    RunTargetFactory,
    StaffFactory,
    TeamMateFactory,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("redis")]

STEP = {"text": "", "after_hours": "24", "urgency": "medium"}


def of(owner: User, name: str, **values: object) -> FollowUp:
    run = RunFactory.create(reminder=ReminderFactory.create(owner=owner))
    recipient = RecipientFactory.create(owner=owner, name=name)
    return FollowUpFactory.create(
        target=RunTargetFactory.create(run=run, recipient=recipient, sent=True), **values
    )


def typed(*steps: dict[str, str], **numbers: str) -> dict[str, str]:
    filled = [*steps, *[STEP] * (3 - len(steps))]
    numbers = {
        "follow_up_max_attempts": "",
        "follow_up_cooldown_hours": "",
        "second_message_hours": "",
    } | numbers
    return numbers | {
        f"step-{n}-{name}": value for n, step in enumerate(filled) for name, value in step.items()
    }


def test_the_page_shows_the_queue_the_reasons_and_each_one(client: Client, owner: User) -> None:
    of(owner, "Aisyah waits")
    of(owner, "Badrul left", removed=True)
    client.force_login(owner)
    page = client.get("/follow-ups/")
    assertContains(page, "Aisyah waits")
    assertContains(page, "<b>1</b> of 5,000")
    assertContains(page, 'href="?status=removed&amp;reason=opted%20out"')


def test_status_reason_and_words_narrow_the_list(client: Client, owner: User) -> None:
    of(owner, "Aisyah waits")
    of(owner, "Badrul left", removed=True)
    client.force_login(owner)
    for address in ("?status=queued", "?q=aisyah", "?status=queued&reason=nonsense"):
        page = client.get(f"/follow-ups/{address}")
        assertContains(page, "Aisyah waits")
        assertNotContains(page, "Badrul left")
    assertContains(client.get("/follow-ups/?reason=opted out"), "Badrul left")
    assertContains(client.get("/follow-ups/?reason=blocked"), "No follow-ups found")


def test_operators_see_their_own_team_mates_what_is_shared_and_staff_all(client: Client, owner: User) -> None:
    of(owner, "Aisyah waits")
    mate = TeamMateFactory.create(owner=owner).mate
    for person, sees in ((mate, True), (StaffFactory.create(), True), (OperatorFactory.create(), False)):
        client.force_login(person)
        page = client.get("/follow-ups/")
        assert ("Aisyah waits" in page.content.decode()) == sees
    client.logout()
    assertRedirects(client.get("/follow-ups/"), "/login/?next=/follow-ups/")


def test_above_the_threshold_the_page_says_that_only_high_urgency_enters(
    client: Client, owner: User, settings: Settings
) -> None:
    settings.FOLLOW_UP_BACKPRESSURE_THRESHOLD = 0
    of(owner, "Aisyah waits")
    client.force_login(owner)
    assertContains(client.get("/follow-ups/"), "only urgent ones are added now")


def test_steps_are_written_changed_in_place_and_taken_away(client: Client, owner: User) -> None:
    reminder = ReminderFactory.create(owner=owner)
    here = f"/reminders/{reminder.pk}/follow-ups"
    client.force_login(owner)
    assert client.get(here).status_code == 200
    first = {"text": "Did you see this?", "after_hours": "24", "urgency": "high"}
    second = {"text": "Last call", "after_hours": "48", "urgency": "low"}
    assertRedirects(
        client.post(here, typed(first, second, follow_up_max_attempts="2")), f"/reminders/{reminder.pk}/"
    )
    kept, _ = FollowUpStep.objects.filter(reminder=reminder)
    assert (kept.text, kept.after_hours, kept.urgency) == ("Did you see this?", 24, "high")
    assert Reminder.objects.get(pk=reminder.pk).follow_up_max_attempts == 2
    assertContains(client.get(f"/reminders/{reminder.pk}/"), "Last call")
    client.post(here, typed({**first, "text": "Anything?"}))
    left = FollowUpStep.objects.get(reminder=reminder)
    assert (left.pk, left.text) == (kept.pk, "Anything?")


def test_a_variable_that_nobody_has_is_named_when_a_step_is_saved(client: Client, owner: User) -> None:
    client.force_login(owner)
    reminder = ReminderFactory.create(owner=owner, recipients=2)
    here = f"/reminders/{reminder.pk}/follow-ups"
    page = client.post(here, typed({**STEP, "text": "Still due, {{ city }}"}), follow=True)
    told = " ".join(str(message) for message in page.context["messages"])
    assert "{{ city }} is missing for 2 people: they get no follow-up." in told


def test_a_step_may_have_choices_and_one_from_before_keeps_its_braces(client: Client, owner: User) -> None:
    client.force_login(owner)
    reminder = ReminderFactory.create(owner=owner)
    here = f"/reminders/{reminder.pk}/follow-ups"
    old = FollowUpStepFactory.create(reminder=reminder, text="{a|b}", position=0)
    [part] = sending._parts(old)
    assert part.drawn(key="k", part=0) == "{a|b}"
    assertContains(client.get(here), "\\{a|b}</textarea>")
    client.post(here, typed({**STEP, "text": "{Hi|Hello}"}))
    [part] = sending._parts(FollowUpStep.objects.get(reminder=reminder))
    assert {part.drawn(key=f"k{n}", part=0) for n in range(20)} == {"Hi", "Hello"}


def test_what_was_sent_outlives_its_step(client: Client, owner: User) -> None:
    sent = of(owner, "Aisyah", sent=True)
    client.force_login(owner)
    client.post(f"/reminders/{sent.target.run.reminder_id}/follow-ups", typed())
    sent.refresh_from_db()
    assert sent.step is None
    assertContains(client.get("/follow-ups/"), "deleted step")


@pytest.mark.parametrize(
    ("step", "numbers"),
    [
        ({"text": "Hello", "after_hours": "", "urgency": "low"}, {}),
        ({"text": "Hello", "after_hours": "0", "urgency": "low"}, {}),
        ({"text": "Hello", "after_hours": "soon", "urgency": "low"}, {}),
        ({"text": "Hello", "after_hours": "5", "urgency": "panic"}, {}),
        ({**STEP, "text": "{a|{b|c}}"}, {}),
        (STEP, {"follow_up_max_attempts": "4"}),
        (STEP, {"follow_up_cooldown_hours": "0"}),
    ],
)
def test_what_makes_no_sense_is_refused_and_nothing_is_kept(
    client: Client, owner: User, step: dict[str, str], numbers: dict[str, str]
) -> None:
    reminder = ReminderFactory.create(owner=owner)
    client.force_login(owner)
    page = client.post(f"/reminders/{reminder.pk}/follow-ups", typed(step, **numbers))
    assertContains(page, 'class="error"')
    assert not FollowUpStep.objects.exists()


def test_only_who_may_touch_a_reminder_writes_its_steps(client: Client, owner: User) -> None:
    reminder = ReminderFactory.create(owner=owner)
    reader = TeamMateFactory.create(owner=owner).mate
    operator = TeamMateFactory.create(owner=owner, manage=True).mate
    for person, status in ((reader, 403), (operator, 302), (OperatorFactory.create(), 404)):
        client.force_login(person)
        assert client.post(f"/reminders/{reminder.pk}/follow-ups", typed()).status_code == status


def test_the_recipient_shows_follow_ups_that_were_dropped(client: Client, owner: User) -> None:
    dropped = of(owner, "Badrul", removed=True)
    client.force_login(owner)
    page = client.get(f"/recipients/{dropped.recipient_id}/")
    assertContains(page, f"Follow-up: {dropped.target.run.name}")


def test_a_list_of_many_costs_no_more_queries_than_one_of_few(client: Client, owner: User) -> None:
    client.force_login(owner)
    reminder = ReminderFactory.create(owner=owner)
    step = FollowUpStepFactory.create(reminder=reminder)
    run = RunFactory.create(reminder=reminder)
    for _ in range(10):
        FollowUpFactory.create(target=RunTargetFactory.create(run=run, sent=True), step=step)
    assert client.get("/follow-ups/").status_code == 200
