"""Reads the environment for `settings.py`, and remembers which names were read.

Every name is read through one of the methods below, so that a value outside its range stops the start
with a sentence, and a test can compare docs/configuration.md with the names that are really read.
"""

from collections.abc import Sequence
from pathlib import Path

import environ
from django.core.exceptions import ImproperlyConfigured

TRUE = frozenset({"true", "yes", "on", "1"})
FALSE = frozenset({"false", "no", "off", "0"})


class Environment:
    """django-environ with ranges. An empty value counts as none.

    Numbers and flags are read here and not by django-environ, which takes "1e2" for 12, "5 minutes" for 5 and
    "ture" for false.
    """

    def __init__(self, dotenv: Path | None = None) -> None:
        self._env = environ.Env()
        self.names: set[str] = set()
        if dotenv is not None and dotenv.is_file():
            self._env.read_env(str(dotenv))

    def text(self, name: str, default: str = "") -> str:
        self.names.add(name)
        return str(self._env.str(name, default="")).strip() or default

    def flag(self, name: str, *, default: bool = False) -> bool:
        given = self.text(name)
        if given and given.lower() not in TRUE | FALSE:
            raise self._not_a("yes or a no", name, given)
        return given.lower() in TRUE if given else default

    def words(self, name: str, default: Sequence[str] = ()) -> list[str]:
        return [word.strip() for word in self.text(name).split(",") if word.strip()] or list(default)

    def whole(self, name: str, default: int, low: int, high: int) -> int:
        given = self.text(name)
        try:
            return int(self._in_range(name, int(given) if given else default, low, high))
        except ValueError as error:
            raise self._not_a("whole number", name, given) from error

    def number(self, name: str, default: float, low: float, high: float) -> float:
        given = self.text(name)
        try:
            return self._in_range(name, float(given) if given else default, low, high)
        except ValueError as error:
            raise self._not_a("number", name, given) from error

    def _not_a(self, kind: str, name: str, given: str) -> ImproperlyConfigured:
        return ImproperlyConfigured(f"{name} is {given!r}, which is not a {kind}: correct or unset it.")

    def _in_range(self, name: str, value: float, low: float, high: float) -> float:
        if low <= value <= high:
            return value
        raise ImproperlyConfigured(f"{name} is {value:g}: it must be from {low:g} to {high:g}.")
