"""Does what an operator would do, and reads what an operator would see, through the driver."""

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.chaos.programs import PROJECT


class DriverError(Exception):
    """Raised when the driver could not do something; its words say why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunView:
    """A run as its page shows it."""

    status: str
    pause_reason: str
    summary: str
    total: int
    pending: int
    sending: int
    sent: int
    failed: int
    skipped: int
    unconfirmed: int

    @property
    def settled(self) -> bool:
        return self.status in {"success", "partial", "failed", "canceled"}


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetView:
    """One recipient of a run."""

    key: str
    status: str
    fence: int | None
    attempts: int
    error: str
    address: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountView:
    """An account as its page shows it, and the number of the pump that serves it."""

    status: str
    waiting_for: str
    waiting_detail: str
    slow_factor: float
    fence: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FiringView:
    """A run in its reminder's history."""

    run: int
    reminder: int
    status: str
    on_its_moment: bool


class Operator:
    """Speaks to a driver in a process of its own."""

    def __init__(self, env: Mapping[str, str], *, project: Path = PROJECT) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.chaos.driver"],
            cwd=project,
            env=dict(env),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def leave(self) -> None:
        self._process.kill()
        self._process.communicate()

    def add_account(
        self, name: str, *, url: str, idempotent: bool, group_concurrency: int, limits: Mapping[str, float]
    ) -> int:
        number: int = self._ask(
            "add_account",
            name=name,
            url=url,
            idempotent=idempotent,
            group_concurrency=group_concurrency,
            limits=limits,
        )
        return number

    def fire(self, account: int, *, targets: int, parts: int = 1, people: bool = False) -> int:
        number: int = self._ask("fire", account=account, targets=targets, parts=parts, people=people)
        return number

    def schedule(self, account: int, *, targets: int, after: Sequence[float]) -> list[int]:
        """One-off reminders, due so many seconds from now."""
        reminders: list[int] = self._ask("schedule", account=account, targets=targets, after=list(after))
        return reminders

    def firings(self, reminders: Sequence[int]) -> list[FiringView]:
        return [FiringView(**firing) for firing in self._ask("firings", reminders=list(reminders))]

    def run(self, run: int) -> RunView:
        return RunView(**self._ask("run", run=run))

    def targets(self, run: int) -> list[TargetView]:
        return [TargetView(**target) for target in self._ask("targets", run=run)]

    def outcomes(self, run: int) -> list[str]:
        words: list[str] = self._ask("outcomes", run=run)
        return words

    def begun(self, run: int) -> list[int]:
        """Return when each attempt began, in milliseconds, by the ledger."""
        times: list[int] = self._ask("begun", run=run)
        return times

    def account(self, account: int) -> AccountView:
        return AccountView(**self._ask("account", account=account))

    def change_limits(self, account: int, **limits: float) -> None:
        self._ask("change_limits", account=account, limits=limits)

    def start_account(self, account: int) -> None:
        self._ask("start_account", account=account)

    def pause(self, run: int) -> None:
        self._ask("pause", run=run)

    def opt_out(self, run: int, *, count: int) -> list[str]:
        """Opt out the last recipients of a run, and return their addresses."""
        addresses: list[str] = self._ask("opt_out", run=run, count=count)
        return addresses

    def resume(self, run: int) -> None:
        self._ask("resume", run=run)

    def cancel(self, run: int) -> None:
        self._ask("cancel", run=run)

    def send_pumps(self, account: int, *, times: int) -> None:
        self._ask("send_pumps", account=account, times=times)

    def close_window(self, run: int, *, seconds: float) -> int:
        """Set the end of the run's window, and return it in milliseconds."""
        moment: int = self._ask("close_window", run=run, seconds=seconds)
        return moment

    def open_window(self, run: int) -> None:
        self._ask("open_window", run=run)

    def _ask(self, verb: str, **arguments: Any) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"verb": verb, **arguments}) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        if "error" in answer:
            raise DriverError(answer["error"])
        return answer["answer"]
