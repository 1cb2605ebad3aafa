"""Every command, in words and as JSON."""

import io
import json
import sys
from pathlib import Path

import pytest

from accounts.models import Account, Recipient, User
from client import login as logins
from delivery.models import Run
from reminders.models import Reminder
from tests.client.conftest import Run as Command
from tests.client.conftest import key_of
from tests.factories import InboundFactory, RecipientFactory, RunFactory, TagFactory

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.xdist_group("live server")]


@pytest.fixture
def anna(person: User) -> Recipient:
    return RecipientFactory.create(owner=person, name="Anna")


class Terminal(io.StringIO):
    """A keyboard at which somebody types."""

    def isatty(self) -> bool:
        return True


def type_in(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal(text))


def test_logging_in_keeps_the_key_and_says_whose_it_is(
    login: str, run: Command, person: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = key_of(person)
    monkeypatch.delenv("PACELINE_URL")
    monkeypatch.delenv("PACELINE_KEY")
    assert run("me").code == 1
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"{key}\n"))
    done = run("login", login)
    assert done.code == 0
    assert "as olga, with manage, read, send, steer" in done.out
    assert key not in done.out + done.err
    assert run("me", "--json").json["person"]["username"] == "olga"
    assert run("logout").code == 0
    assert run("me").code == 1


def test_a_wrong_key_is_not_kept(login: str, run: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("paceline_wrong\n"))
    done = run("login", login)
    assert (done.code, "not known" in done.err) == (1, True)
    assert not logins.place().exists()


def test_accounts_are_listed_paused_and_resumed(login: str, run: Command, account: Account) -> None:
    assert "School phone" in run("accounts", "list").out
    assert run("accounts", "list", "--json").json[0]["id"] == account.pk
    assert "per day" in run("accounts", "show", account.pk).out
    assert run("accounts", "pause", account.pk, "--json").json["status"] == "paused"
    assert "School phone: active" in run("accounts", "resume", account.pk).out


def test_recipients_are_added_and_found(login: str, run: Command, person: User) -> None:
    TagFactory.create(owner=person, name="Parents")
    added = run(
        *("recipients", "add", "whatsapp", "+60 12-345 6789", "--name", "Aisyah"),
        *("--tag", "Parents", "--field", "amount=30", "--json"),
    )
    assert added.json["result"] == "added"
    assert "Aisyah" in run("recipients", "list", "ais", "--tag", "parents").out
    assert "{{ amount }}  30" in run("recipients", "show", added.json["id"]).out
    assert run("recipients", "add", "whatsapp", "nonsense").code == 1
    assert "no tag" in run("recipients", "list", "--tag", "Teachers").err


def test_a_draft_is_made_forecast_scheduled_and_fired(
    login: str, run: Command, account: Account, anna: Recipient, tmp_path: Path
) -> None:
    text = tmp_path / "text.txt"
    text.write_text("Dear {{ name }}", encoding="utf-8")
    draft = run(
        *("reminders", "draft", "Rent", "--text-file", text, "--account", account.pk, "--to", anna.pk),
        *("--cron", "0 9 1 * *", "--zone", "Europe/Berlin", "--hours", "0-24", "--json"),
    )
    assert draft.code == 0, draft.err
    pk = draft.json["id"]
    assert (draft.json["cron"], draft.json["parts"][0]["text"]) == ("0 9 1 * *", "Dear {{ name }}")
    assert "Dear {{ name }}" in run("reminders", "show", pk).out
    assert run("reminders", "forecast", pk, "--json").json["targets"] == 1
    dry = run("reminders", "schedule", pk, "--dry-run")
    assert "Recipients: 1" in dry.out
    assert "Nothing was sent." in dry.out
    assert Reminder.objects.get(pk=pk).status == "draft"
    assert "Scheduled." in run("reminders", "schedule", pk, "--yes").out
    assert run("reminders", "fire", pk, "--dry-run", "--json").json["dry_run"] is True
    assert not Run.objects.exists()
    assert run("reminders", "fire", pk, "--yes", "--json").json["run"]["total"] == 1
    assert "Rent" in run("reminders", "list").out


def test_a_draft_that_is_not_complete_is_named(login: str, run: Command, person: User) -> None:
    done = run("reminders", "draft", "Rent", "--text", "Hi", "--account", "999")
    assert done.code == 1
    assert f"draft {Reminder.objects.get().pk} was made" in done.err


def test_without_a_terminal_nothing_leaves_unless_told(login: str, run: Command, ready: Reminder) -> None:
    done = run("reminders", "fire", ready.pk)
    assert (done.code, "--yes" in done.err) == (3, True)
    assert not Run.objects.exists()


@pytest.mark.parametrize(("typed", "code", "runs"), [("y\n", 0, 1), ("n\n", 3, 0), ("\n", 3, 0), ("", 3, 0)])
def test_a_person_is_asked_before_anything_leaves(
    login: str,
    run: Command,
    ready: Reminder,
    monkeypatch: pytest.MonkeyPatch,
    typed: str,
    code: int,
    runs: int,
) -> None:
    type_in(monkeypatch, typed)
    done = run("reminders", "fire", ready.pk)
    assert (done.code, Run.objects.count()) == (code, runs)
    assert "Send it to 3 recipients now?" in done.err


def test_a_reminder_that_changes_between_look_and_yes_is_not_sent(
    login: str, run: Command, ready: Reminder, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Slow(Terminal):
        def readline(self, *_: object) -> str:  # type: ignore[override]
            ready.parts.update(text="Something else")
            return "y\n"

    monkeypatch.setattr(sys, "stdin", Slow())
    done = run("reminders", "fire", ready.pk)
    assert (done.code, "changed since you looked" in done.err) == (1, True)
    assert not Run.objects.exists()


def test_a_message_is_shown_before_it_is_sent(
    login: str, run: Command, account: Account, anna: Recipient, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("send", "Hi {{ name }}", "--account", account.pk, "--recipient", anna.pk, "--hours", "0-24")
    dry = run(*words, "--dry-run")
    assert "From School phone to Anna" in dry.out
    assert "Hi Anna" in dry.out
    assert run(*words, "--dry-run", "--json").json["texts"] == ["Hi Anna"]
    assert run(*words).code == 3
    assert not Run.objects.exists()
    type_in(monkeypatch, "yes\n")
    assert run(*words).code == 0
    assert Run.objects.count() == 1
    new = ("send", "Hello", "--account", account.pk, "--to", "+60123456789", "--name", "Ben", "--yes")
    assert run(*new).code == 0
    assert Recipient.objects.filter(name="Ben").exists()


def test_runs_are_shown_steered_and_watched(
    login: str, run: Command, ready: Reminder, monkeypatch: pytest.MonkeyPatch
) -> None:
    pk = run("reminders", "fire", ready.pk, "--yes", "--json").json["run"]["id"]
    assert run("runs", "list", "--json").json[0]["id"] == pk
    assert "3 pending" in run("runs", "show", pk).out
    assert run("runs", "pause", pk, "--json").json["status"] == "paused"
    assert run("runs", "resume", pk, "--json").json["status"] == "running"
    asked = run("runs", "cancel", pk)
    assert (asked.code, "Nothing was canceled" in asked.err) == (3, True)
    type_in(monkeypatch, "y\n")
    assert "canceled" in run("runs", "cancel", pk).out
    watched = run("runs", "watch", pk, "--json")
    assert (watched.code, json.loads(watched.out)["status"]) == (1, "canceled")
    assert run("runs", "retry", pk).code == 1


def test_a_run_that_ended_well_is_watched_to_its_end(login: str, run: Command, ready: Reminder) -> None:
    found = RunFactory.create(reminder=ready, success=True)
    assert run("runs", "watch", found.pk).code == 0


def test_replies_cannot_steer_the_terminal(
    login: str, run: Command, account: Account, anna: Recipient
) -> None:
    InboundFactory.create(
        account=account, recipient=anna, text="Paid\x1b[2J\x9b31m\u202e\nThanks", sender=anna.address
    )
    shown = run("replies")
    assert "Paid[2J31m\n    Thanks" in shown.out
    assert not set("\x1b\x9b\u202e") & set(shown.out)
    assert run("replies", "--recipient", anna.pk, "--json").json[0]["recipient"] == anna.pk


def test_a_key_without_the_scope_is_told_which_one_it_needs(
    login: str, run: Command, person: User, ready: Reminder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PACELINE_KEY", key_of(person, ["read"]))  # type: ignore[list-item]
    refused = run("runs", "pause", RunFactory.create(reminder=ready).pk, "--json")
    assert (refused.code, refused.json["scope"]) == (1, "steer")
