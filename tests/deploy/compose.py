"""Reads compose.yaml and the Dockerfile as Docker would, so that their commands can be run as processes here."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from tests.config.programs import PROJECT

VARIABLE = re.compile(r"\$(?:(\$)|\{(\w+)(?::([-?])([^}]*))?\})")


def compose(values: Mapping[str, str]) -> dict[str, Any]:
    """Return the file with `values` in the places of its variables; raise KeyError where a required one is missing."""

    def value(found: "re.Match[str]") -> str:
        dollar, name, kind, rest = found.groups()
        if dollar:
            return "$"
        if kind == "?" and not values.get(name):
            raise KeyError(f"{name}: {rest}")
        return values.get(name) or (rest if kind == "-" else "")

    def filled(part: Any) -> Any:
        if isinstance(part, dict):
            return {key: filled(each) for key, each in part.items()}
        if isinstance(part, list):
            return [filled(each) for each in part]
        return VARIABLE.sub(value, part) if isinstance(part, str) else part

    read: dict[str, Any] = filled(yaml.safe_load((PROJECT / "compose.yaml").read_text()))
    return read


def dockerfile() -> str:
    return (PROJECT / "Dockerfile").read_text().replace("\\\n", " ")


def image_command() -> Sequence[str]:
    """Return what the image runs where compose.yaml names no command."""
    [command] = re.findall(r"^CMD (\[.*\])$", dockerfile(), re.MULTILINE)
    found: list[str] = json.loads(command)
    return found


def health_command() -> Sequence[str]:
    [command] = re.findall(r"^HEALTHCHECK .*?CMD (\[.*\])$", dockerfile(), re.MULTILINE)
    found: list[str] = json.loads(command)
    return found
