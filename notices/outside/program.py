"""Sends one message through apprise, as a program of its own: python -I program.py, a question on standard input.

It has no settings, no database and no secret but the address that it is given, and is ended after a while by whoever
started it. The question is `{"url", "title", "body", "networks", "verb"}`; the answer, on standard output, is
`{"outcome", "status", "host"}` with an outcome of `Outcome`.
"""

import contextlib
import importlib
import importlib.util
import io
import json
import logging
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

HERE = Path(__file__).resolve()
NETWORKS = HERE.parents[2] / "delivery" / "transports" / "networks" / "allowed.py"
CONNECT_SECONDS, READ_SECONDS = 5.0, 10.0

GOOD, UNREADABLE, UNKNOWN, PRIVATE, REFUSED, UNREACHABLE = (
    "good",  # checked, or taken by the service
    "unreadable",  # apprise cannot read the address
    "unknown",  # the service is not one of ours
    "private",  # it leads to a network that this installation does not allow
    "refused",  # the service answered, and did not take it
    "unreachable",  # no answer
)


def loaded(path: Path) -> ModuleType:
    """Load a module from its file: importing it by name would load its whole package."""
    spec = importlib.util.spec_from_file_location(f"_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise ImportError(str(path))
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


class Watched:
    """The facts seen of the connections: whether one was refused, and the last answer's status."""

    def __init__(self, networks: Any) -> None:
        self._networks = networks
        self.private = False
        self.status: int | None = None

    def require(self, address: str) -> None:
        """Raise where the network rule does not allow the address; note it, since apprise swallows the error."""
        try:
            self._networks.require(address)
        except OSError:
            self.private = True
            raise

    def follow_answers(self) -> None:
        """Note the status of every answer: apprise returns only whether it worked."""
        import requests  # noqa: PLC0415 - a check of an address needs none

        session: Any = requests.Session
        send = session.send

        def noting(*arguments: Any, **options: Any) -> Any:
            answer = send(*arguments, **options)
            self.status = answer.status_code
            return answer

        session.send = noting


def instantiated(url: str, module: str) -> Any:
    """Return apprise's object for the address, or None where it cannot be read."""
    from apprise import AppriseAsset, OverflowMode  # noqa: PLC0415
    from apprise.plugins.base import NotifyBase  # noqa: PLC0415

    beginning = url.partition("://")[0].lower()
    found = vars(importlib.import_module(f"apprise.plugins.{module}")).values()
    kinds = [each for each in found if isinstance(each, type) and issubclass(each, NotifyBase)]
    kind = next(each for each in kinds if beginning in _beginnings(each))
    parts = kind.parse_url(url)
    if not parts:
        return None
    asset = AppriseAsset(http_redirects=False, storage_mode="memory", secure_logging=True)
    asset.app_id = asset.app_desc = "Paceline"
    asset.app_url = asset.image_url_mask = asset.image_url_logo = ""
    made = kind(**parts, asset=asset)
    # The address may ask for other values; these are not its to choose.
    made.redirects, made.verify_certificate = False, True
    made.overflow_mode = OverflowMode.TRUNCATE  # a service refuses what is too long for it
    made.socket_connect_timeout, made.socket_read_timeout = CONNECT_SECONDS, READ_SECONDS
    return made


def _beginnings(kind: Any) -> set[str]:
    """Return the beginnings of the addresses of a kind; apprise has one, several, or none of each sort."""
    found: set[str] = set()
    for words in (kind.protocol, kind.secure_protocol):
        found |= {words} if isinstance(words, str) else set(words or ())
    return found


def answer(question: dict[str, Any]) -> dict[str, Any]:
    """Check the address or send the message; return the answer."""
    service = loaded(HERE.with_name("services.py")).service_of(question["url"])
    if service is None:
        return {"outcome": UNKNOWN}
    watched = Watched(loaded(NETWORKS).allowed_networks(question["networks"]))
    guard = loaded(HERE.with_name("guard.py"))
    guard.limit()
    guard.close(watched.require)
    try:
        made = instantiated(question["url"], service.module)
    except (TypeError, ValueError, OSError):  # apprise's own errors are TypeErrors
        made = None
    if made is None:
        return {"outcome": UNREADABLE}
    if question["verb"] == "check":
        return {"outcome": GOOD, "host": str(made.host or "") if service.own_host else ""}
    return _sent(made, question, watched)


def _sent(made: Any, question: dict[str, Any], watched: Watched) -> dict[str, Any]:
    watched.follow_answers()
    if made.notify(title=question["title"], body=question["body"], body_format="text"):
        return {"outcome": GOOD, "status": watched.status}
    if watched.private:
        return {"outcome": PRIVATE}
    return {"outcome": REFUSED if watched.status else UNREACHABLE, "status": watched.status}


def main() -> None:
    """Answer the question on standard input. Whatever libraries print goes nowhere: it may hold the address."""
    logging.disable()
    question = json.load(sys.stdin)
    out = sys.stdout
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        found = answer(question)
    json.dump(found, out)


if __name__ == "__main__":
    main()
