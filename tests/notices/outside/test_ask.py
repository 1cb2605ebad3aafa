"""Real apprise against services on loopback: what they receive, and what is refused however it is written."""

import json
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from pytest_django import Settings

from notices.outside import ask, guard, program
from notices.outside.services import SERVICES, service_of
from tests.config.programs import PROJECT
from tests.delivery.transports.certificate import self_signed
from tests.notices.services import TOKEN, Services, services

# Slack has one address in the world: here the vendor's class is pointed at the local server.
SLACK = """
import runpy, sys
from apprise.plugins.slack import NotifySlack
NotifySlack.webhook_url = "http://{place}/services"
sys.argv = ["program.py"]
runpy.run_path("{program}", run_name="__main__")
"""


def send(url: str) -> ask.Reply:
    return ask.send(url, title="Reminder paused", body="Rent is due: 640 of 1000 <groups> delivered.")


def test_a_webhook_gets_title_and_text(chat: Services) -> None:
    assert send(f"json://{chat.place}/hook").good
    [body] = chat.messages()
    assert (body["title"], body["message"]) == (
        "Reminder paused",
        "Rent is due: 640 of 1000 <groups> delivered.",
    )


def test_ntfy_gets_it_in_its_topic(chat: Services) -> None:
    assert send(f"ntfy://{chat.place}/my-topic").good
    [body] = chat.messages()
    assert (body["topic"], body["title"]) == ("my-topic", "Reminder paused")


def test_matrix_logs_in_joins_the_room_and_sends(chat: Services) -> None:
    assert send(f"matrix://bot:secret@{chat.place}/!room:here").good
    paths = [each.path for each in chat.requests]
    assert [path.split("/")[-1] for path in paths[:1]] == ["login"]
    [sent] = [each for each in chat.requests if "/send/m.room.message" in each.path]
    assert "Rent is due" in json.dumps(sent.body)


def test_slack_gets_it_at_its_webhook(
    chat: Services, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrapped = tmp_path / "slack.py"
    wrapped.write_text(SLACK.format(place=chat.place, program=ask.PROGRAM))
    monkeypatch.setattr(ask, "PROGRAM", wrapped)
    reply = send(f"slack://{TOKEN}/#general")
    assert reply == ask.Reply(good=True)
    [request] = chat.requests
    assert request.path == f"/services/{TOKEN}"
    assert "Rent is due" in json.dumps(request.body)


def test_an_address_that_names_a_file_of_ours_does_not_send_it(
    chat: Services, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrapped, secret = tmp_path / "slack.py", tmp_path / "secret.json"
    wrapped.write_text(SLACK.format(place=chat.place, program=ask.PROGRAM))
    block = {"type": "section", "text": {"type": "mrkdwn", "text": "the keys of the installation"}}
    secret.write_text(json.dumps({"text": "keys", "blocks": [block]}))  # what Slack takes as a template
    monkeypatch.setattr(ask, "PROGRAM", wrapped)
    assert not send(f"slack://{TOKEN}/?template={secret}").good
    assert chat.requests == []


def test_a_text_that_is_too_long_for_the_service_is_cut(chat: Services) -> None:
    assert ask.send(f"ntfy://{chat.place}/topic", title="Many", body="word " * 10_000).good
    [body] = chat.messages()
    assert len(body["message"]) < 10_000


@pytest.mark.parametrize(
    ("status", "problem"),
    [
        (401, "the service refuses the key in the address (401)"),
        (404, "the service does not know this address (404)"),
        (429, "the service asks to send less (429)"),
        (500, "the service answered 500"),
    ],
)
def test_a_refusal_is_told_in_plain_words(chat: Services, status: int, problem: str) -> None:
    chat.status = status
    assert send(f"json://{chat.place}/secret-path") == ask.Reply(good=False, problem=problem)


def test_a_service_that_is_not_there_cannot_be_reached() -> None:
    assert send("json://127.0.0.1:9/").problem == "the service cannot be reached"


def test_a_service_that_never_ends_is_ended(chat: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    over = threading.Event()

    def hang() -> None:
        over.wait(30)

    chat.before = hang
    monkeypatch.setattr(ask, "SECONDS", 3)
    try:
        assert send(f"json://{chat.place}/").problem == "no answer within 3 s"
    finally:
        over.set()


def test_a_service_that_answers_without_end_takes_no_more_memory_than_it_may(chat: Services) -> None:
    chat.megabytes = 2_000
    assert send(f"json://{chat.place}/").problem == "the service's answer cannot be read"


class TestNetworks:
    """The network rule holds for the connection, however the address is written."""

    @pytest.fixture(autouse=True)
    def no_private_networks(self, settings: Settings) -> None:
        settings.PRIVATE_NETWORKS = ["none"]

    @pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "127.1", "2130706433", "0.0.0.0"])
    def test_no_spelling_of_this_machine_is_reached(self, chat: Services, host: str) -> None:
        reply = send(f"json://{host}:{chat.port}/")
        assert not reply.good
        assert chat.requests == []

    def test_it_says_that_the_network_is_private(self, chat: Services) -> None:
        assert send(f"ntfy://{chat.place}/topic").problem == ask.OUTCOMES["private"]

    def test_a_named_network_is_reached(self, chat: Services, settings: Settings) -> None:
        settings.PRIVATE_NETWORKS = ["127.0.0.0/8"]
        assert send(f"json://{chat.place}/").good

    def test_an_address_that_tells_of_itself_as_a_proxy_is_not_used(
        self, chat: Services, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("HTTP_PROXY", f"http://{chat.place}")
        monkeypatch.setenv("ALL_PROXY", f"http://{chat.place}")
        assert not send("json://127.0.0.1:9/").good
        assert chat.requests == []


def test_a_name_that_leads_elsewhere_the_second_time_is_judged_by_where_it_leads(chat: Services) -> None:
    """The first look-up answers a public address, the second one this machine: the guard sees the connection."""
    rebinding = (
        "import socket, json, sys, runpy\n"
        "real, seen = socket.getaddrinfo, []\n"
        "def look_up(host, port, *rest, **more):\n"
        "    seen.append(host)\n"
        "    place = '93.184.216.34' if len(seen) == 1 else '127.0.0.1'\n"
        "    return real(place, port, *rest, **more)\n"
        "socket.getaddrinfo = look_up\n"
        "look_up('rebind.example', 80)\n"
        f"runpy.run_path({str(ask.PROGRAM)!r}, run_name='__main__')\n"
    )
    ended = _program(rebinding, f"json://rebind.example:{chat.port}/")
    assert json.loads(ended.stdout) == {"outcome": "private"}
    assert chat.requests == []


def test_a_redirect_is_not_followed(chat: Services) -> None:
    chat.status, chat.location = 302, f"http://{chat.place}/elsewhere"
    reply = send(f"json://{chat.place}/?redirect=yes")
    assert reply.problem == "the address leads on to another one; enter that one (302)"
    assert [each.path for each in chat.requests] == ["/"]


def test_certificates_are_checked_whatever_the_address_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    context, trusted = self_signed(tmp_path)
    with services(context) as found:
        place = f"jsons://localhost:{found.port}/?verify=no"
        assert not send(place).good
        assert found.requests == []
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(trusted))
        assert send(place).good


def _program(code: str, url: str) -> subprocess.CompletedProcess[bytes]:
    question = {"verb": "send", "url": url, "title": "T", "body": "B", "networks": ["none"]}
    return subprocess.run(
        [sys.executable, "-I", "-B", "-c", code],
        input=json.dumps(question).encode(),
        capture_output=True,
        check=True,
        cwd=PROJECT,
        timeout=60,
    )


@pytest.mark.parametrize(
    "url",
    [
        "syslog://",
        "file:///etc/passwd",
        "dbus://",
        "gnome://",
        "windows://",
        "macosx://",
        "rsyslog://10.0.0.1",
        "mailto://user:pass@example.com",
        "smpp://user:pass@host",
        "mqtt://host/topic",
        "irc://host/channel",
        "exec://ls",
        "json",
        "",
        " json://host",
    ],
)
def test_what_is_not_an_http_service_is_not_even_loaded(url: str) -> None:
    assert service_of(url) is None
    assert send(url).problem == ask.OUTCOMES["unknown"]


@pytest.mark.parametrize("url", ["slack://x", "tgram://", "json://", "discord://a"])
def test_an_address_that_cannot_be_read_is_refused_before_it_is_kept(url: str) -> None:
    assert ask.check(url).problem == ask.OUTCOMES["unreadable"]


def test_a_check_sends_nothing(chat: Services) -> None:
    assert ask.check(f"json://{chat.place}/") == ask.Reply(good=True, host="127.0.0.1")
    assert chat.requests == []


@pytest.mark.parametrize(
    "code",
    [
        "open('/etc/passwd').read()",
        f"open({str(PROJECT / 'manage.py')!r}).read()",
        "open('/tmp/paceline-guard', 'w')",
        "__import__('os').open('/tmp/paceline-guard', 0o102)",
        "__import__('os').system('true')",
        "__import__('subprocess').run(['true'])",
        "__import__('os').fork()",
        "__import__('socket').create_connection(('127.0.0.1', 80))",
        "(s := __import__('socket').socket(), s.connect(('localhost', 80)))",
        "(s := __import__('socket').socket(1), s.connect('/var/run/docker.sock'))",
        "(s := __import__('socket').socket(2, 2), s.sendto(b'x', ('127.0.0.1', 53)))",
        "__import__('os').remove('/tmp/paceline-guard')",
    ],
)
def test_the_guard_refuses_files_programs_and_private_places(code: str) -> None:
    program = (
        "import importlib.util, sys\n"
        f"def load(p, n):\n"
        "    spec = importlib.util.spec_from_file_location(n, p); m = importlib.util.module_from_spec(spec)\n"
        "    sys.modules[n] = m; spec.loader.exec_module(m); return m\n"
        f"guard = load({guard.__file__!r}, 'guard')\n"
        f"networks = load({str(program_networks())!r}, 'networks')\n"
        "import os, subprocess, socket\n"
        "guard.close(networks.allowed_networks(['none']).require)\n"
        f"try:\n    {code}\nexcept OSError as error:\n    print(type(error).__name__)\n"
    )
    ended = subprocess.run([sys.executable, "-I", "-c", program], capture_output=True, text=True, check=False)
    assert ended.stdout.strip() in {"RefusedError", "AddressNotAllowedError"}, ended.stderr


def program_networks() -> Path:
    return program.NETWORKS


@pytest.mark.parametrize("beginning", SERVICES)
def test_apprise_has_every_service_that_we_name(beginning: str) -> None:
    """A module that apprise renames would fail only when somebody uses it."""
    module = SERVICES[beginning].module
    found = __import__(f"apprise.plugins.{module}", fromlist=["x"])
    beginnings = {
        word
        for each in vars(found).values()
        if isinstance(each, type) and hasattr(each, "secure_protocol")
        for word in program._beginnings(each)
    }
    assert beginning in beginnings


def test_the_documentation_names_every_service() -> None:
    text = (PROJECT / "docs" / "notifications.md").read_text()
    assert [s.name for s in SERVICES.values() if s.name not in text] == []
