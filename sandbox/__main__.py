"""python -m sandbox: run the practice gateway."""

import argparse
import asyncio
import os
import sys
from collections.abc import Callable
from pathlib import Path

from sandbox.behaviour import Behaviour, BehaviourError, changed
from sandbox.server import CannotListenError, serve


def port(given: str) -> int:
    """Read a port number; a larger number would silently become another port."""
    if not given.isdecimal() or int(given) > 65535:
        raise argparse.ArgumentTypeError(f"{given!r} is not a number from 0 to 65535")
    return int(given)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m sandbox", description="A practice messaging gateway.")
    env = os.environ.get
    parser.add_argument("--host", default=env("SANDBOX_HOST", "127.0.0.1"))
    parser.add_argument("--port", type=port, default=env("SANDBOX_PORT") or "8081", help="0 takes a free one")
    parser.add_argument("--log", type=Path, default=env("SANDBOX_LOG", "var/sandbox.jsonl"))
    parser.add_argument(
        "--groups", type=int, default=env("SANDBOX_GROUPS", "12"), help="how many groups a new account has"
    )
    return parser.parse_args()


def event_loop() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Return uvloop's loop where it is installed: it halves the cost of a request."""
    try:
        import uvloop  # noqa: PLC0415
    except ImportError:
        return None
    return uvloop.new_event_loop


def announce(address: str) -> None:
    sys.stdout.write(f"Sandbox: {address}\n")
    sys.stdout.flush()


def main() -> None:
    given = arguments()
    try:
        defaults = changed(Behaviour(), {"groups": given.groups})
    except BehaviourError as error:
        sys.exit(f"--groups: {error}")
    try:
        with asyncio.Runner(loop_factory=event_loop()) as runner:
            runner.run(
                serve(host=given.host, port=given.port, log=given.log, defaults=defaults, ready=announce)
            )
    except CannotListenError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
