"""Reminders over the API: from a draft to a run."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.utils import timezone
from PIL import Image

from accounts.models import Recipient, User
from api.scopes import Scope
from config.shares import Shares
from delivery.models import Run
from reminders import fire
from reminders.models import Media, Reminder
from tests.api.program import Program, problem_of
from tests.factories import AccountFactory, MediaFactory, RecipientFactory, ReminderFactory, TagFactory


@pytest.fixture
def ready(owner: User) -> Reminder:
    return ReminderFactory.create(
        owner=owner, by_hand=True, status="scheduled", around_the_clock=True, recipients=3, name="Rent"
    )


def test_a_draft_becomes_a_scheduled_reminder(program: Program, owner: User) -> None:
    account, tag = AccountFactory.create(owner=owner), TagFactory.create(owner=owner)
    tagged = RecipientFactory.create(owner=owner, tags=[tag], name="Anna")
    chosen = RecipientFactory.create(owner=owner, name="Ben")
    draft = program.post("/reminders", {"name": "Fees"}, status=201)
    assert (draft["status"], draft["waiting_for"]) == ("draft", "draft")
    assert {each["field"] for each in draft["problems"]} == {"message", "accounts", "recipients", "when"}
    at = f"/reminders/{draft['id']}"
    told = program.put(
        f"{at}/message",
        {"parts": [{"text": "Hi {{ name }}", "other_wordings": ["Hello {{ name }}"]}, {"text": "Bye"}]},
    )
    assert told["parts"][0]["other_wordings"] == ["Hello {{ name }}"]
    audience = program.put(f"{at}/audience", {"accounts": [account.pk], "tags": [tag.pk], "add": [chosen.pk]})
    assert (audience["reached"], audience["accounts"]) == (2, [account.pk])
    moment = timezone.now() + timedelta(days=2)
    times = {"schedule": "once", "at": moment.isoformat(), "zone": "Asia/Kuala_Lumpur", "start_hour": 0,
             "end_hour": 24}  # fmt: skip
    assert program.put(f"{at}/times", times)["window"]["end_hour"] == 24
    assert program.get(f"{at}/forecast")["targets"] == 2
    scheduled = program.post(f"{at}/schedule")
    assert (scheduled["status"], scheduled["waiting_for"]) == ("scheduled", "schedule")
    assert scheduled["leaves_at"][:16] == moment.astimezone(UTC).isoformat()[:16]
    assert "Asia/Kuala_Lumpur" in scheduled["sentence"]
    assert program.post(f"{at}/switch-off")["waiting_for"] == "switched_off"
    assert tagged.pk != chosen.pk


def test_what_is_missing_keeps_it_from_being_scheduled(program: Program, owner: User) -> None:
    draft = program.post("/reminders", status=201, body={})
    told = problem_of(program.ask("POST", f"/reminders/{draft['id']}/schedule"))
    assert told["type"] == "not-ready"
    assert {fault["field"] for fault in told["errors"]} == {"message", "accounts", "recipients", "when"}


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"zone": "Mars/Base"}, "zone"),
        ({"schedule": "cron", "cron": "every day"}, "cron"),
        ({"start_hour": 18, "end_hour": 6}, "end_hour"),
        ({"at": "2026-11-20T09:00:00"}, "at"),
        ({"at": "8999-11-20T09:00:00Z"}, "at"),
        ({"days": []}, "days"),
        ({"drip_gap_min": 900, "drip_gap_max": 300}, "drip_gap_max"),
        ({"weekday": 1}, "weekday"),
    ],
)
def test_times_that_cannot_be_are_named(program: Program, owner: User, body: object, field: str) -> None:
    reminder = ReminderFactory.create(owner=owner)
    told = problem_of(program.ask("PUT", f"/reminders/{reminder.pk}/times", body))
    assert told["errors"][0]["field"] == field


def test_an_edit_that_would_break_a_scheduled_reminder_is_refused_as_a_whole(
    program: Program, owner: User
) -> None:
    reminder = ReminderFactory.create(owner=owner, scheduled=True, recipients=1, priority=0)
    past = {"at": datetime(2020, 1, 1, tzinfo=UTC).isoformat(), "priority": 9}
    assert problem_of(program.ask("PUT", f"/reminders/{reminder.pk}/times", past))["type"] == "not-ready"
    reminder.refresh_from_db()
    assert reminder.priority == 0


def test_nothing_of_a_change_of_the_audience_is_kept_where_a_part_is_wrong(
    program: Program, owner: User
) -> None:
    reminder, tag = ReminderFactory.create(owner=owner), TagFactory.create(owner=owner)
    theirs = RecipientFactory.create()
    answer = program.ask("PUT", f"/reminders/{reminder.pk}/audience", {"tags": [tag.pk], "add": [theirs.pk]})
    assert problem_of(answer)["errors"][0]["field"] == "add"
    assert not reminder.tags.exists()


def test_a_dry_run_says_what_would_happen_and_changes_nothing(program: Program, ready: Reminder) -> None:
    told = program.post(f"/reminders/{ready.pk}/fire", {"dry_run": True})
    assert (told["dry_run"], told["run"], told["audience"]["reached"]) == (True, None, 3)
    assert told["leaves_at"] is not None
    assert told["forecast"]["fits"] is True
    assert not Run.objects.exists()


def test_firing_makes_a_run_once_for_each_idempotency_key(program: Program, ready: Reminder) -> None:
    path = f"/reminders/{ready.pk}/fire"
    first = program.post(path, Idempotency_Key="a")
    assert program.post(path, Idempotency_Key="a") == first
    assert (first["run"]["total"], first["run"]["status"]) == (3, "running")
    assert first["leaves_at"] == first["run"]["leaves_at"] is not None
    assert Run.objects.count() == 1
    assert "still running" in problem_of(program.ask("POST", path, Idempotency_Key="b"))["detail"]


def test_recipients_without_a_value_are_left_out_only_when_asked(program: Program, ready: Reminder) -> None:
    Recipient.objects.filter(pk=ready.recipients.order_by("pk")[0].pk).update(name="")
    path = f"/reminders/{ready.pk}/fire"
    told = problem_of(program.ask("POST", path))
    assert (told["type"], told["short"], told["lacking"]) == ("confirmation-needed", 1, {"name": 1})
    assert program.post(path, {"without_short": True})["run"]["total"] == 3


def test_a_draft_is_not_fired_and_is_deleted_while_it_never_ran(program: Program, owner: User) -> None:
    draft = ReminderFactory.create(owner=owner)
    assert problem_of(program.ask("POST", f"/reminders/{draft.pk}/fire"))["type"] == "wrong-state"
    copy = program.post(f"/reminders/{draft.pk}/duplicate", status=201)
    program.delete(f"/reminders/{draft.pk}")
    assert [row["id"] for row in program.get("/reminders")["items"]] == [copy["id"]]
    program.post(f"/reminders/{copy['id']}/archive")
    assert program.get("/reminders")["items"] == []
    assert program.post(f"/reminders/{copy['id']}/unarchive")["archived_at"] is None


def test_a_file_is_uploaded_once_and_named_by_parts(program: Program, owner: User, tmp_path: Path) -> None:
    Image.new("RGB", (2, 2)).save(tmp_path / "a.png")
    content = (tmp_path / "a.png").read_bytes()

    def upload(**more: str) -> dict[str, object]:
        answer = Client().post(
            "/api/v1/media",
            {"file": SimpleUploadedFile("a.png", content)},
            headers={"Authorization": f"Bearer {program.secret}", **more},
        )
        assert answer.status_code == 201, answer.content
        found: dict[str, object] = answer.json()
        return found

    first = upload()
    again = upload(**{"Idempotency-Key": "x"})
    assert first["id"] == again["id"] == upload(**{"Idempotency-Key": "x"})["id"]
    assert (first["content_type"], Media.objects.count()) == ("image/png", 1)
    draft = program.post("/reminders", {}, status=201)
    path = f"/reminders/{draft['id']}/message"
    told = program.put(path, {"parts": [{"media": first["id"], "text": "Look"}]})
    assert told["parts"][0] == {
        "kind": "media", "text": "Look", "other_wordings": [], "media": first["id"], "filename": "a.png",
    }  # fmt: skip
    theirs = MediaFactory.create()
    answer = program.ask("PUT", path, {"parts": [{"media": theirs.pk}]})
    assert problem_of(answer)["errors"][0]["field"] == "parts.0.media"


@pytest.mark.parametrize(
    "body", [{"parts": [{"text": " "}]}, {"parts": [{"text": "x"}] * 11}, {"parts": [{}]}]
)
def test_a_message_that_is_none_is_refused(program: Program, owner: User, body: object) -> None:
    reminder = ReminderFactory.create(owner=owner)
    assert program.ask("PUT", f"/reminders/{reminder.pk}/message", body).status_code in {409, 422}


def test_a_start_that_finds_no_place_is_not_the_answer_for_a_day(
    program: Program, ready: Reminder, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = Shares(total=1, each=1)
    taken.take(ready.owner_id)
    with monkeypatch.context() as patch:
        patch.setattr(fire, "starts", lambda: taken)
        answer = program.ask("POST", f"/reminders/{ready.pk}/fire", {}, Idempotency_Key="a")
        assert (problem_of(answer)["type"], answer["Retry-After"]) == ("busy", "5")
    assert program.post(f"/reminders/{ready.pk}/fire", {}, Idempotency_Key="a")["run"]["total"] == 3


@pytest.mark.parametrize("verb", ["fire", "schedule"])
@pytest.mark.parametrize("change", ["text", "recipient", "consent", "times", "nothing"])
def test_a_confirmation_holds_only_for_what_was_looked_at(
    program: Program, ready: Reminder, owner: User, verb: str, change: str
) -> None:
    content = program.get(f"/reminders/{ready.pk}/content")["content"]
    first = ready.recipients.order_by("pk")[0]
    if change == "text":
        ready.parts.update(text="Something else")
    elif change == "recipient":  # another one, so that the number is the same
        ready.recipients.remove(first)
        ready.recipients.add(RecipientFactory.create(owner=owner))
    elif change == "consent":
        Recipient.objects.filter(pk=first.pk).update(opted_out_at=timezone.now())
    elif change == "times":
        Reminder.objects.filter(pk=ready.pk).update(window_start_hour=3)
    answer = program.ask("POST", f"/reminders/{ready.pk}/{verb}", {"content": content})
    if change == "nothing":
        assert answer.status_code == 200, answer.content
        return
    assert (answer.status_code, problem_of(answer)["type"]) == (409, "changed")
    assert not Run.objects.exists()


@pytest.mark.parametrize(
    ("part", "body"),
    [
        ("message", {"parts": [{"text": "Pay at evil.example"}]}),
        ("audience", {"tags": []}),
        ("times", {"schedule": "cron", "cron": "* * * * *"}),
    ],
)
def test_a_key_that_may_not_send_does_not_change_what_will_be_sent(
    owner: User, ready: Reminder, part: str, body: object
) -> None:
    manages = Program(owner, [Scope.READ, Scope.MANAGE])
    told = problem_of(manages.ask("PUT", f"/reminders/{ready.pk}/{part}", body))
    assert (told["type"], told["scope"]) == ("missing-scope", "send")
    assert "scheduled" in told["detail"]
    draft = ReminderFactory.create(owner=owner, recipients=1)
    assert manages.ask("PUT", f"/reminders/{draft.pk}/{part}", body).status_code == 200
    both = Program(owner, [Scope.MANAGE, Scope.SEND])
    assert both.ask("PUT", f"/reminders/{ready.pk}/{part}", body).status_code != 403
