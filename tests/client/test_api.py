"""A lost answer, a program that is ended, a server that asks to wait: nothing is sent twice, nothing is lost."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from accounts.models import Account, Recipient
from client import unanswered
from delivery.models import Run
from tests.client.conftest import Run as Command
from tests.client.losing import LosingNetwork, losing_network
from tests.config.programs import PROJECT
from tests.factories import RecipientFactory

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.xdist_group("live server")]


@pytest.fixture
def network(login: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[LosingNetwork]:
    with losing_network(login) as found:
        monkeypatch.setenv("PACELINE_URL", found.url)
        yield found


@pytest.fixture
def anna(account: Account) -> Recipient:
    return RecipientFactory.create(owner=account.owner, name="Anna")


def words(account: Account, anna: Recipient) -> list[str]:
    return ["send", "Hello", "--account", str(account.pk), "--recipient", str(anna.pk), "--yes", "--json"]


def test_a_lost_answer_is_asked_for_again_and_the_message_is_sent_once(
    network: LosingNetwork, run: Command, account: Account, anna: Recipient
) -> None:
    network.lost = 2
    done = run(*words(account, anna))
    assert (done.code, done.json["id"]) == (0, Run.objects.get().pk)
    assert len(network.names) == 3
    assert len(set(network.names)) == 1


def test_a_command_that_never_got_its_answer_gets_it_when_it_is_run_again(
    network: LosingNetwork, run: Command, account: Account, anna: Recipient
) -> None:
    network.lost = 6
    unclear = run(*words(account, anna))
    assert (unclear.code, "same command again" in unclear.json["detail"]) == (4, True)
    again = run(*words(account, anna))
    assert (again.code, again.json["id"]) == (0, Run.objects.get().pk)
    assert "no answer" in again.err
    assert len(set(network.names)) == 1
    assert run(*words(account, anna)).code == 0  # the person wants another one
    assert Run.objects.count() == 2


def test_a_program_that_is_killed_before_its_answer_sends_nothing_twice(
    network: LosingNetwork, run: Command, account: Account, anna: Recipient
) -> None:
    network.lost = 10**6
    killed = subprocess.Popen(
        [sys.executable, "-m", "client", *words(account, anna)], cwd=PROJECT, env=os.environ
    )
    assert network.done.wait(60)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    network.lost = 0
    done = run(*words(account, anna))
    assert (done.code, done.json["id"]) == (0, Run.objects.get().pk)


def test_a_name_that_paceline_has_forgotten_is_not_used_again(
    network: LosingNetwork, run: Command, account: Account, anna: Recipient, monkeypatch: pytest.MonkeyPatch
) -> None:
    network.lost = 6
    assert run(*words(account, anna)).code == 4
    monkeypatch.setattr(unanswered, "KEPT_SECONDS", -1)
    told = run(*words(account, anna))
    assert (told.code, "See what was done" in told.json["detail"]) == (1, True)
    assert run(*words(account, anna)).code == 0
    assert Run.objects.count() == 2


def test_without_a_connection_nothing_was_done_and_no_name_is_kept(
    login: str, run: Command, account: Account, anna: Recipient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PACELINE_URL", "http://127.0.0.1:9")
    done = run(*words(account, anna))
    assert (done.code, "Nothing was done" in done.json["detail"]) == (1, True)
    assert not list(unanswered.folder().glob("*"))


def test_a_refusal_says_what_is_wrong_and_what_to_do(login: str, run: Command, account: Account) -> None:
    out = RecipientFactory.create(owner=account.owner, opted_out=True)
    refused = run(*words(account, out)[:-1])
    assert (refused.code, refused.out) == (1, "")
    assert "has opted out" in refused.err
    problem = run(*words(account, out)).json
    assert (problem["type"], problem["status"]) == ("urn:paceline:problem:wrong-state", 409)


def test_an_address_that_is_not_paceline_is_said_to_be_none(
    login: str, run: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PACELINE_URL", f"{login}/accounts")
    assert "not as Paceline does" in run("me").err


def test_lists_come_whole_over_several_pages(
    login: str, run: Command, account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    RecipientFactory.create_batch(205, owner=account.owner)
    found = run("recipients", "list", "--limit", "300", "--json").json
    assert len({row["id"] for row in found}) == 205
    assert len(run("recipients", "list", "--limit", "203", "--json").json) == 203


def test_a_folder_that_cannot_be_written_keeps_nobody_from_working(
    login: str,
    run: Command,
    account: Account,
    anna: Recipient,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("PACELINE_STATE", str(tmp_path / "file"))
    assert run(*words(account, anna)).code == 0
