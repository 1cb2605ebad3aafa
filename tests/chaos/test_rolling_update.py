"""The release before this one goes on working beside the new schema, and can take over again (SPEC O4).

Its files come from the history of this checkout. Its programs make the database and send; the new release migrates
under them. At the end the gateway's log says that no message was lost or doubled and that no limit was crossed.
"""

import re
import socket
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest

from sandbox.process import SandboxProcess
from tests.chaos import programs, release
from tests.chaos.evidence import Evidence, part_keys
from tests.chaos.lab import environment, until
from tests.chaos.operator import Operator
from tests.chaos.programs import PROJECT, Program
from tests.chaos.servers import Servers
from tests.config.test_migrations import RELEASE

pytestmark = pytest.mark.soak

PER_MINUTE, PER_SECOND = 600, 12  # 100 ms apart, up to 12 % less
TARGETS = 2400  # four minutes: longer than the migrations take, on a busy machine too
RUSH = {"per_minute": 3000}  # once everything was seen at the pace above, so that the test ends sooner
PASSWORD = "a-long-enough-password"
PAGES = (
    *("", "reminders/", "recipients/", "accounts/", "activity/", "activity/attempts/", "notifications/"),
    *("admin/", "admin/delivery/run/", "admin/delivery/runtarget/", "admin/activity/attempt/"),
)


class Update:
    """Two releases on one database: the programs of either are started and stopped by the test."""

    def __init__(self, before: Path, stack: ExitStack) -> None:
        self.before, self.stack = before, stack
        self.servers = Servers()
        stack.callback(self.servers.remove)
        self.servers.start()
        self.env = environment(self.servers)
        self.gateway = stack.enter_context(SandboxProcess(self.servers.home / "sandbox.jsonl"))
        release.manage(before, "migrate", "-v0", env=self.env)
        self.programs: list[Program] = []

    def operator(self, project: Path) -> Operator:
        operator = Operator(self.env, project=project)
        self.stack.callback(operator.leave)
        return operator

    def worker(self, project: Path) -> Program:
        name = f"worker-{len(self.programs)}"
        started = programs.worker(name, threads=16, env=self.env, folder=self.servers.home, project=project)
        return self._adopted(started)

    def beat(self, project: Path) -> Program:
        name = f"beat-{len(self.programs)}"
        return self._adopted(programs.beat(name, env=self.env, folder=self.servers.home, project=project))

    def web(self, project: Path, port: int) -> Program:
        name = f"web-{len(self.programs)}"
        started = programs.web(name, port=port, env=self.env, folder=self.servers.home, project=project)
        return self._adopted(started)

    def _adopted(self, program: Program) -> Program:
        self.stack.callback(program.kill)
        self.programs.append(program)
        return program

    def said(self) -> str:
        return "\n".join(program.said() for program in self.programs)


@pytest.fixture
def update(tmp_path: Path) -> Iterator[Update]:
    try:
        before = release.unpack(RELEASE, tmp_path / "before")
    except release.NoHistoryError as error:
        pytest.skip(str(error))
    with ExitStack() as stack:
        made = Update(before, stack)
        yield made
        sys.stdout.write(made.said())


def test_the_release_before_sends_and_serves_pages_while_and_after_the_schema_changes(update: Update) -> None:
    old = update.operator(update.before)
    account = _account(update, old, "first")
    seen = Evidence(update.gateway.log, "first")
    update.beat(update.before)
    worker = update.worker(update.before)
    person = _person(update, update.before)
    runs = [old.fire(account, targets=TARGETS)]
    until(lambda: len(seen.delivered()) >= 30, "the release before sends")

    release.manage(PROJECT, "migrate", "-v0", env=update.env)

    assert not old.run(runs[0]).settled, "the run ended before the schema was new: give it more targets"
    arrived = len(seen.delivered())
    until(lambda: len(seen.delivered()) >= arrived + 30, "it goes on beside the new schema")
    assert worker.running
    assert _pages(person, runs[0]) == {}
    assert _steered(person, runs[0]) == []

    new = update.operator(PROJECT)
    other = _account(update, new, "second")
    runs.append(old.fire(account, targets=60))
    update.beat(PROJECT)
    after = update.worker(PROJECT)
    runs += [new.fire(account, targets=60), new.fire(other, targets=200)]
    until(lambda: new.run(runs[3]).sent >= 40, "the new run begins")
    worker.ask_to_stop()
    assert worker.exit_code() == 0
    done = new.run(runs[0]).sent
    until(lambda: new.run(runs[0]).sent >= done + 30, "the new release goes on with what the old one made")

    after.ask_to_stop()
    assert after.exit_code() == 0
    update.worker(update.before)
    runs.append(new.fire(other, targets=60))

    until(lambda: new.run(runs[4]).sent >= 20, "the release before serves a run of the new one")
    for name in ("first", "second"):
        evidence = Evidence(update.gateway.log, name)
        assert evidence.worst(60_000) <= PER_MINUTE
        assert evidence.worst(1_000) <= PER_SECOND

    new.change_limits(account, **RUSH)
    for run in runs:
        until(lambda run=run: new.run(run).settled, f"run {run} ends", 300)  # type: ignore[misc]
    assert [new.run(run).status for run in runs] == ["success"] * len(runs), update.said()
    for name, own in (("first", [runs[0], runs[1], runs[2]]), ("second", runs[3:])):
        evidence = Evidence(update.gateway.log, name)
        targets = [target for run in own for target in new.targets(run)]
        assert evidence.arrivals() == dict.fromkeys(part_keys(targets), 1)


def _account(update: Update, operator: Operator, name: str) -> int:
    """Make an account at a gateway that would take a message twice."""
    update.gateway.behave(name, idempotent=False)
    return operator.add_account(
        name,
        url=update.gateway.url,
        idempotent=False,
        group_concurrency=3,
        limits={"per_minute": PER_MINUTE},
    )


def _person(update: Update, project: Path) -> httpx.Client:
    """Log in to the pages of one release as a superuser."""
    made = update.env | {"DJANGO_SUPERUSER_PASSWORD": PASSWORD}
    words = ("createsuperuser", "--noinput", "--username=person", "--email=person@example.com")
    release.manage(project, *words, env=made)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    update.web(project, port)
    client = update.stack.enter_context(
        httpx.Client(base_url=f"http://127.0.0.1:{port}/", timeout=60, follow_redirects=True)
    )
    until(lambda: _answers(client), "the pages are served")
    _post(client, "login/", username="person", password=PASSWORD)
    return client


def _answers(client: httpx.Client) -> bool:
    try:
        return client.get("login/").status_code == 200
    except httpx.TransportError:
        return False


def _post(client: httpx.Client, address: str, **values: str) -> httpx.Response:
    client.get("login/")
    token = client.cookies.get("csrftoken", "")
    return client.post(address, data={"csrfmiddlewaretoken": token, **values})


def _pages(client: httpx.Client, run: int) -> dict[str, int]:
    """Return the pages that do not open."""
    asked = {
        address: client.get(address) for address in (*PAGES, f"runs/{run}/", "reminders/1/", "accounts/1/")
    }
    assert re.search("Log out", asked[""].text), "nobody is logged in"
    return {address: answer.status_code for address, answer in asked.items() if answer.status_code != 200}


def _steered(client: httpx.Client, run: int) -> list[int]:
    """Pause and resume the run from its page, and return the answers that are none."""
    answers = [_post(client, f"runs/{run}/{verb}").status_code for verb in ("pause", "resume")]
    return [status for status in answers if status != 200]
