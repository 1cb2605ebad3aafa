"""All of Paceline in real processes, on a separate database of the benchmark: workers, beat and the sandbox."""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psutil
from django.conf import settings
from django.db import connection
from redis import Redis

from accounts.models import Account, Limit, User
from benchmarks.tables import scratch
from config.celery import app
from config.redis.address import redis_address
from config.redis.client import client
from delivery.models import Run
from delivery.states import OPEN_RUN
from reminders.fire import fire
from reminders.models import Part, Reminder, ReminderAccount
from sandbox.process import SandboxProcess

PROJECT = Path(__file__).resolve().parent.parent
REDIS_DATABASE = 15
RECEIVER = "receiver"  # among the programs: what takes the messages is no part of Paceline


@dataclass(kw_only=True)
class Rig:
    """The processes, the database and the rows that a benchmark uses."""

    sandbox: SandboxProcess
    folder: Path
    environment: Mapping[str, str]
    owner: User
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def log(self) -> Path:
        return self.sandbox.log

    def start(self, *command: str, **environment: str) -> None:
        """Start one more process, with the rig's environment."""
        output = (self.folder / f"{len(self.processes)}-{command[0]}.log").open("wb")
        program = [str(Path(sys.executable).parent / command[0]), *command[1:]]
        everything = {**self.environment, **environment}
        self.processes.append(
            subprocess.Popen(program, cwd=PROJECT, env=everything, stdout=output, stderr=output)
        )

    def start_workers(self, count: int, *, threads: int) -> None:
        for number in range(1, count + 1):
            self.start(
                "celery", "-A", "config", "worker", "--pool=threads", f"--concurrency={threads}",
                "--loglevel=warning", "--without-gossip", "--without-mingle", f"--hostname=worker{number}@bench",
                ACCOUNT_SHARE=f"{number}/{count}", WORKER_THREADS=str(threads),
            )  # fmt: skip
        self.start("celery", "-A", "config", "beat", "--loglevel=warning")
        self._await_workers(count)

    def _await_workers(self, count: int) -> None:
        """Wait until each worker has reported that it reads its queues."""
        deadline = time.monotonic() + 120
        while client().hlen("paceline:seen:worker") < count:
            if time.monotonic() > deadline:
                raise RuntimeError(f"The workers did not start: see {self.folder}.")
            time.sleep(0.2)
        time.sleep(5)  # until they are up and idle

    def accounts(self, count: int, *, per_minute: int, concurrency: int, gateway: str = "") -> list[Account]:
        accounts = [
            Account(
                owner=self.owner,
                name=f"Account {number}",
                channel="whatsapp",
                transport="sandbox",
                status=Account.Status.ACTIVE,
                profile="whatsapp_established",
                as_before=True,  # without a daily cap
                group_concurrency=concurrency,
                credentials={
                    "base_url": gateway or self.sandbox.url,
                    "account": f"a{number}",
                    "token": "bench",
                },
            )
            for number in range(count)
        ]
        made = Account.objects.bulk_create(accounts)
        Limit.objects.bulk_create(Limit(account=account, per_minute=per_minute) for account in made)
        return made

    def recipients(self, count: int) -> None:
        """Fill the owner's address book in bulk."""
        with connection.cursor() as cursor:
            cursor.execute(
                """
                INSERT INTO accounts_recipient (owner_id, channel, kind, address, name, fields, attempts, created_at)
                SELECT %s, 'whatsapp', 'group', n || '@g.us', 'Group ' || n, '{}', 0, now()
                FROM generate_series(1, %s) n
                """,
                [self.owner.pk, count],
            )
            cursor.execute("ANALYZE accounts_recipient")

    def reminder(
        self, accounts: Sequence[Account], *, first: int, count: int, text: str = "Hello"
    ) -> Reminder:
        """Return a reminder for `count` recipients from the `first` on."""
        reminder = Reminder.objects.create(
            owner=self.owner, name="Bench", schedule="by_hand", window_start_hour=0, window_end_hour=24
        )
        Part.objects.create(reminder=reminder, text=text)
        for account in accounts:
            ReminderAccount.objects.create(reminder=reminder, account=account)
        with connection.cursor() as cursor:
            cursor.execute(
                """
                INSERT INTO reminders_reminder_recipients (reminder_id, recipient_id)
                SELECT %s, id FROM accounts_recipient ORDER BY id OFFSET %s LIMIT %s
                """,
                [reminder.pk, first, count],
            )
        return reminder

    def fire(self, reminder: Reminder) -> Run:
        return fire(reminder)

    def wait_until_settled(self, *, within: float) -> None:
        deadline = time.monotonic() + within
        while Run.objects.filter(status__in=OPEN_RUN).exists():
            if time.monotonic() > deadline:
                raise RuntimeError(f"The runs did not end within {within:g} s: see {self.folder}.")
            time.sleep(0.25)

    def use(self, *others: int) -> "Use":
        """Return the CPU time and memory of all processes so far, servers and `others` included."""
        servers = _servers()
        mine = _family([psutil.Process(process.pid) for process in self.processes] + servers)
        receivers = _family([psutil.Process(pid) for pid in (self.sandbox.pid, *others)])
        spent: dict[str, float] = {}
        for each in {**mine, **receivers}.values():
            with suppress(psutil.NoSuchProcess):
                name = RECEIVER if each.pid in receivers else each.name()
                spent[name] = spent.get(name, 0.0) + _cpu(each)
        return Use(
            cpu=sum(spent.values()),
            rss_mb=sum(_rss(each) for each in {**mine, **receivers}.values()) / 1e6,
            by_program=spent,
        )

    def stop(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait()


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    cpu: float
    rss_mb: float
    by_program: Mapping[str, float]

    @property
    def own(self) -> float:
        """Return the CPU time without that of the receivers."""
        return self.cpu - self.by_program.get(RECEIVER, 0.0)


@contextmanager
def rig(purpose: str, **environment: str) -> Iterator[Rig]:
    """Start everything except the workers; stop everything afterwards."""
    with ExitStack() as stack:
        name = stack.enter_context(scratch.database(purpose))
        folder = Path(tempfile.mkdtemp(prefix=f"paceline-{purpose}-"))
        sandbox = stack.enter_context(SandboxProcess(folder / "sandbox.jsonl"))
        redis_url = _other_redis()
        settings.REDIS_URL = redis_url
        client.cache_clear()
        # Otherwise workers learn of a firing only with the next tick.
        app.conf.broker_url = redis_address(redis_url).broker
        client().flushdb()
        owner = User.objects.create(username="bench")
        given = {**os.environ, "DATABASE_URL": _named(name), "REDIS_URL": redis_url, **environment}
        rigged = Rig(sandbox=sandbox, folder=folder, environment=given, owner=owner)
        stack.callback(connection.close_pool)  # type: ignore[attr-defined]  # PostgreSQL's has one
        stack.callback(connection.close)
        stack.callback(rigged.stop)
        yield rigged


def _named(database: str) -> str:
    return urlunsplit(urlsplit(os.environ["DATABASE_URL"])._replace(path=f"/{database}"))


def _other_redis() -> str:
    """Return the address of a separate database on the same Redis server."""
    url = os.environ["REDIS_URL"]
    parts = urlsplit(url)
    if parts.scheme == "unix":
        return f"unix://{parts.path}?db={REDIS_DATABASE}"  # `urlunsplit` would drop the empty host
    return urlunsplit(parts._replace(path=f"/{REDIS_DATABASE}"))


def _family(parents: Sequence[psutil.Process]) -> dict[int, psutil.Process]:
    return {each.pid: each for parent in parents for each in [parent, *parent.children(recursive=True)]}


def _servers() -> list[psutil.Process]:
    """Return the main processes of the benchmark's PostgreSQL and Redis; others on this machine are not ours."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        backend = psutil.Process(cursor.fetchone()[0])
    redis = int(Redis.from_url(os.environ["REDIS_URL"]).info("server")["process_id"])
    return [backend.parent() or backend, psutil.Process(redis)]


def _cpu(process: psutil.Process) -> float:
    """Return the CPU time of a process and of those of its children that have ended, as connections do."""
    times = process.cpu_times()
    return float(times.user + times.system + times.children_user + times.children_system)


def _rss(process: psutil.Process) -> float:
    try:
        return float(process.memory_full_info().pss)
    except (psutil.NoSuchProcess, AttributeError):
        return 0.0
