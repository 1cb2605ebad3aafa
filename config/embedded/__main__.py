"""`python -m config.embedded run -- COMMAND`, and `status`, `stop` and `erase`."""

import argparse
import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from config.embedded import servers, var_folder
from config.embedded.place import home_of
from config.embedded.postgres import Postgres
from config.embedded.process import StartError, attended, exit_code, explaining
from config.embedded.redis_server import Redis
from config.embedded.server import Server
from config.embedded.sharing import stop_all, unused


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; every foreseeable failure is one sentence and exit code 2."""
    options = _parser().parse_args(arguments)
    var = options.var.resolve() if options.var else var_folder()
    try:
        return int(options.action(var, options))
    except StartError as error:
        return _fail(str(error))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m config.embedded", description=__doc__)
    actions = parser.add_subparsers(required=True)
    for name, action, purpose in (
        ("run", _run, "run a command with DATABASE_URL and REDIS_URL set, and the servers up"),
        ("status", _status, "say which servers run, and where"),
        ("stop", _stop, "stop servers that a killed program left behind"),
        ("erase", _erase, "stop them and delete their data"),
    ):
        sub = actions.add_parser(name, help=purpose)
        sub.add_argument("--var", type=Path, help="data folder (default: PACELINE_VAR, else var/)")
        sub.set_defaults(action=action)
        if action is _run:
            sub.add_argument("command", nargs="+", help="the command and its arguments, after --")
    return parser


def _run(var: Path, options: argparse.Namespace) -> int:
    with servers(var):
        try:
            with attended(options.command, env=os.environ | {"PACELINE_VAR": str(var)}) as child:
                return exit_code(child.wait())
        except (FileNotFoundError, PermissionError):
            return _fail(f"{options.command[0]} cannot be run: there is no such program.", code=127)


def _status(var: Path, _options: argparse.Namespace) -> int:
    with explaining(var):
        running = [_describe(server) for server in _servers(var)]
    return 0 if all(running) else 1


def _describe(server: Server) -> bool:
    ready = server.ready()
    where = server.data if server.on_socket else "a loopback port"
    sys.stdout.write(f"{server.name}: {'runs' if ready else 'stopped'}, on {where}, log in {server.log}\n")
    return ready


def _stop(var: Path, _options: argparse.Namespace) -> int:
    home = home_of(var)
    if home.is_dir():
        with _nobody_using(home):
            for server in stop_all(_servers(var)):
                sys.stdout.write(f"{server.name} stopped.\n")
    return 0


def _erase(var: Path, options: argparse.Namespace) -> int:
    _stop(var, options)
    home = home_of(var)
    for folder in (home, var):
        if folder.is_dir():
            with explaining(folder):
                shutil.rmtree(folder)
    return 0


@contextmanager
def _nobody_using(home: Path) -> Iterator[None]:
    with unused(home) as free:
        if not free:
            raise StartError("A program is using the servers: stop it, and they stop with it.")
        yield


def _servers(var: Path) -> list[Server]:
    home = home_of(var)
    return [Redis(home), Postgres(home)]


def _fail(sentence: str, code: int = 2) -> int:
    sys.stderr.write(f"paceline: {sentence}\n")
    return code


if __name__ == "__main__":
    sys.exit(main())
