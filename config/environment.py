"""Reads the environment for `settings.py`, and remembers what was asked for.

Every name is read through one of the methods below, so that a value outside its range stops the start
with a sentence, and a test can hold docs/configuration.md against what is really read.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import environ
from django.core.exceptions import ImproperlyConfigured


class Environment:
    """django-environ with ranges."""

    def __init__(self, dotenv: Path | None = None) -> None:
        self._env = environ.Env()
        self.names: set[str] = set()
        if dotenv is not None and dotenv.is_file():
            self._env.read_env(str(dotenv))

    def text(self, name: str, default: str = "") -> str:
        return str(self._read("str", name, default))

    def flag(self, name: str, *, default: bool = False) -> bool:
        return bool(self._read("bool", name, default))

    def words(self, name: str, default: Sequence[str] = ()) -> list[str]:
        return [str(word) for word in self._read("list", name, list(default))]

    def whole(self, name: str, default: int, low: int, high: int) -> int:
        return int(self._in_range(name, self._read("int", name, default), low, high))

    def number(self, name: str, default: float, low: float, high: float) -> float:
        return self._in_range(name, float(self._read("float", name, default)), low, high)

    def _read(self, kind: str, name: str, default: object) -> Any:
        self.names.add(name)
        try:
            return getattr(self._env, kind)(name, default=default)
        except ValueError as error:
            given = self._env.str(name)
            raise ImproperlyConfigured(
                f"{name} is {given!r}, which is not a {kind}: correct or unset it."
            ) from error

    def _in_range(self, name: str, value: float, low: float, high: float) -> float:
        if low <= value <= high:
            return value
        raise ImproperlyConfigured(f"{name} is {value:g}: it must be from {low:g} to {high:g}.")


def broker_url(redis_url: str) -> str:
    """The same Redis in Celery's spelling, which differs for a socket."""
    if not redis_url.startswith("unix://"):
        return redis_url
    path, _, query = redis_url.removeprefix("unix://").partition("?")
    database = parse_qs(query).get("db", ["0"])[0]
    return f"redis+socket://{path}?virtual_host={database}"
