"""Asks the program that speaks to chat services, and reads its answer in words for people.

The program is started for each message: what an address makes apprise do happens far from our keys,
and a service that answers without end is ended with the program. It costs about a third of a second of one processor.
"""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings

PROGRAM = Path(__file__).with_name("program.py")
SECONDS = 30
# The authorities that sign certificates, where the installation names its own. No proxies: they would connect for us.
HANDED_ON = ("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "TZ")

STATUSES: Mapping[int, str] = {
    400: "the service does not understand the message",
    401: "the service refuses the key in the address",
    403: "the service refuses the key in the address",
    404: "the service does not know this address",
    410: "the service does not know this address any more",
    413: "the message is too long for the service",
    429: "the service asks to send less",
}
OUTCOMES: Mapping[str, str] = {
    "unreadable": "the address cannot be read",
    "unknown": "Paceline does not send to this kind of address",
    "private": "the address leads to a private network, which this installation does not allow",
    "unreachable": "the service cannot be reached",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """The result of a question: good, or the problem in words. `host` is the server that the address names, if any."""

    good: bool
    problem: str = ""
    host: str = ""


def check(url: str) -> Reply:
    """Return whether apprise can read the address. Nothing is sent."""
    return _ask({"verb": "check", "url": url})


def send(url: str, *, title: str, body: str) -> Reply:
    """Send a message to the address, once. apprise sends no message without a text: the title stands for it."""
    return _ask({"verb": "send", "url": url, "title": title, "body": body or title})


def _ask(question: Mapping[str, str]) -> Reply:
    told = json.dumps({**question, "networks": list(settings.PRIVATE_NETWORKS)})
    try:
        ended = subprocess.run(  # noqa: S603 - our own program; the address goes to its standard input
            [sys.executable, "-I", "-B", str(PROGRAM)],
            input=told.encode(),
            capture_output=True,
            timeout=SECONDS,
            env=_environment(),
            cwd="/",
            check=False,
        )
        return _read(json.loads(ended.stdout))
    except subprocess.TimeoutExpired:
        return Reply(good=False, problem=f"no answer within {SECONDS} s")
    except ValueError:
        return Reply(good=False, problem="the service's answer cannot be read")


def _environment() -> dict[str, str]:
    """Return the few variables that the program gets: none of them is a secret."""
    given = {name: os.environ[name] for name in HANDED_ON if name in os.environ}
    return {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "HOME": "/nonexistent", **given}


def _read(answer: Mapping[str, object]) -> Reply:
    outcome, status, host = answer.get("outcome"), answer.get("status"), answer.get("host")
    if outcome == "good":
        return Reply(good=True, host=str(host or ""))
    if outcome == "refused":
        return Reply(good=False, problem=_refused(status if isinstance(status, int) else 0))
    return Reply(good=False, problem=OUTCOMES.get(str(outcome), "the service cannot be reached"))


def _refused(status: int) -> str:
    if 300 <= status < 400:
        return f"the address leads on to another one; enter that one ({status})"
    if status in STATUSES:
        return f"{STATUSES[status]} ({status})"
    return f"the service answered {status}" if status >= 300 else "the service did not take the message"
