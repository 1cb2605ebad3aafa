"""Reads bodies strictly: JSON in UTF-8 that PostgreSQL can store, and nothing that two programs read differently."""

import json
from typing import Any

from django.http import HttpRequest
from ninja.parser import Parser

from api.problems import invalid, refusal
from config.web.json_bodies import require_storable


class StrictParser(Parser):
    """Refuses other types than JSON, keys that come twice, NaN, and texts with a NUL or half a character."""

    def parse_body(self, request: HttpRequest) -> Any:
        if request.content_type not in {"application/json", ""}:
            raise refusal(415, "wrong-media-type", "Send the body as application/json.")
        try:
            found = json.loads(request.body, parse_constant=_no_number, object_pairs_hook=_each_once)
            require_storable(found)
        except RecursionError as error:
            raise refusal(400, "bad-request", "The JSON is nested too deeply.") from error
        except ValueError as error:
            raise refusal(400, "bad-request", f"The body cannot be read: {error}.") from error
        return found

    def parse_querydict(self, data: Any, list_fields: list[str], request: HttpRequest) -> dict[str, Any]:
        """Read the query; a parameter that comes twice where one value is meant is refused."""
        for name in data:
            if name not in list_fields and len(data.getlist(name)) > 1:
                raise invalid(name, "This parameter comes more than once. Send it once.")
            try:
                require_storable(data.getlist(name))
            except ValueError as error:
                raise invalid(name, "The value has characters that cannot be stored.") from error
        return super().parse_querydict(data, list_fields, request)


def _no_number(name: str) -> float:
    raise ValueError(f"{name} is not a number in JSON")


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("an object has the same key twice")
    return found
