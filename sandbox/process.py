"""Runs a sandbox in a process of its own beside a test or a benchmark."""

import json
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote
from urllib.request import Request, urlopen

PROJECT = Path(__file__).resolve().parent.parent
ANSWERS_WITHIN = 10.0  # seconds


class SandboxProcess:
    """A real sandbox with a log of its own, on a free port that it keeps over a restart."""

    def __init__(self, log: Path, *, groups: int = 12) -> None:
        self.log = log
        self._groups = groups
        self._port = 0
        self.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    @property
    def pid(self) -> int:
        return self._process.pid

    def start(self) -> None:
        """Start the process, and return when requests are answered."""
        command = [sys.executable, "-m", "sandbox", "--host", "127.0.0.1", "--port", str(self._port)]
        command += ["--log", str(self.log), "--groups", str(self._groups)]
        self._process = subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.PIPE, text=True)  # noqa: S603
        said = self._process.stdout.readline() if self._process.stdout else ""
        if not said:
            self.stop()
            raise RuntimeError(f"The sandbox did not start: exit code {self._process.returncode}.")
        self._port = int(said.rpartition(":")[2])

    def stop(self) -> None:
        """Ask the process to end, and wait until it has."""
        self._process.terminate()
        self._wait()

    def kill(self) -> None:
        """Kill the process without a warning, as a crash would."""
        self._process.kill()
        self._wait()

    def behave(self, account: str, **wishes: Any) -> dict[str, Any]:
        """Change the behaviour, state, name or token of an account; return all of them."""
        changed: dict[str, Any] = json.loads(
            self._control("PATCH", f"/control/{quote(account, safe='')}", wishes)
        )
        return changed

    def write_back(self, account: str, to: str, text: str) -> str:
        """Write to the account as a person in a chat; return the id of the message."""
        path = f"/control/{quote(account, safe='')}/chats/{quote(to, safe='')}"
        written: dict[str, str] = json.loads(self._control("POST", path, {"text": text}))
        return written["id"]

    def reset(self) -> None:
        """Make the sandbox forget everything but its log."""
        self._control("DELETE", "/control")

    def _control(self, method: str, path: str, wishes: dict[str, Any] | None = None) -> bytes:
        body = None if wishes is None else json.dumps(wishes).encode()
        request = Request(self.url + path, data=body, method=method)  # noqa: S310 - always our own http address
        with urlopen(request, timeout=ANSWERS_WITHIN) as answer:  # noqa: S310
            content: bytes = answer.read()
            return content

    def _wait(self) -> None:
        self._process.wait(ANSWERS_WITHIN)
        if self._process.stdout:
            self._process.stdout.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
