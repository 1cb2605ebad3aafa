"""The output of commands: text for people, or JSON for programs with `--json`."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from django.core.management.base import BaseCommand, CommandParser
from django.core.serializers.json import DjangoJSONEncoder


def takes_json(parser: CommandParser) -> None:
    parser.add_argument("--json", action="store_true", help="Print JSON, for programs.")


def say(command: BaseCommand, options: Mapping[str, Any], text: str, data: object) -> None:
    """Print `text`, or `data` as JSON where it is asked for."""
    command.stdout.write(as_json(data) if options.get("json") else text)


def as_json(data: object) -> str:
    return json.dumps(data, cls=DjangoJSONEncoder, indent=2, ensure_ascii=False)


def records(head: Sequence[str], rows: Sequence[Sequence[object]]) -> list[dict[str, object]]:
    """Return the rows of a table as objects, named by its head."""
    names = [title.lower().replace(" ", "_") for title in head]
    return [dict(zip(names, row, strict=True)) for row in rows]
