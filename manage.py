#!/usr/bin/env python3
"""Runs a command of Django or of Paceline, with the embedded servers where no others are configured."""

import os
import sys
from pathlib import Path

ENVIRONMENT = Path(__file__).resolve().parent / ".venv"
WITHOUT_SERVERS = {
    "help",
    "version",
    "check",
    "collectstatic",
    "diffsettings",
    "make_key",
    "makemessages",
    "compilemessages",
}


def main() -> None:
    """Run the command in the checkout's virtual environment, with its servers up."""
    enter_environment()
    try:
        from django.core.exceptions import ImproperlyConfigured  # noqa: PLC0415

        from config import development, embedded  # noqa: PLC0415
    except ImportError:
        sys.exit("Paceline's packages are not installed: `make setup` installs them into .venv.")
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    development.load()
    try:
        if needs_servers(sys.argv[1:]):
            with embedded.servers():
                execute()
        else:
            execute()
    except (embedded.StartError, ImproperlyConfigured) as error:
        sys.stderr.write(f"paceline: {error}\n")
        sys.exit(2)


def enter_environment() -> None:
    """Start again with .venv's Python if this one has no Django, so that ./manage.py just works."""
    try:
        import django  # noqa: F401, PLC0415
    except ImportError:
        python = ENVIRONMENT / "bin/python"
        if python.exists() and Path(sys.prefix) != ENVIRONMENT:
            os.execv(python, [str(python), *sys.argv])  # noqa: S606
    if sys.version_info < (3, 11):  # noqa: UP036
        sys.exit("Paceline needs Python 3.11 or newer; this is {}.{}.".format(*sys.version_info[:2]))


def needs_servers(arguments: list[str]) -> bool:
    """Return whether a command may talk to PostgreSQL or Redis."""
    return (
        bool(arguments)
        and not ({"-h", "--help", "--version"} & {*arguments})
        and arguments[0] not in WITHOUT_SERVERS
    )


def execute() -> None:
    from django.core.management import execute_from_command_line  # noqa: PLC0415

    from audit.commands import as_command  # noqa: PLC0415

    with as_command(sys.argv):
        execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
