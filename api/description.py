"""Completes the description of the API (OpenAPI 3.1) with what every route shares."""

from typing import Any

from ninja import NinjaAPI

from api.access import Needs
from api.problems import BASE, CONTENT_TYPE, TITLES

TEXT = """Everything that the pages of Paceline do, for programs.

Send the key of a person as `Authorization: Bearer <key>`. Times are in UTC; the names of zones stand in fields of their
own. Lists have cursor pages. Every POST takes an `Idempotency-Key`. Errors are problem details (RFC 9457)."""

ERRORS = {
    "400": "The request cannot be read.",
    "401": "There is no valid key.",
    "403": "The key or its person may not do this.",
    "404": "There is no such row, or the person may not see it.",
    "409": "It is not possible in the present state, or must be confirmed.",
    "413": "The request is too large.",
    "415": "The body has the wrong type.",
    "422": "Values are wrong; `errors` names each of them.",
    "429": "The key has used its requests of this minute.",
    "503": "Too much is going on right now.",
}
ALWAYS = ("400", "401", "403", "422", "429", "503")
WITH_BODY = ("409", "413", "415")
METHODS = ("get", "post", "put", "patch", "delete")

PROBLEM: dict[str, Any] = {
    "title": "Problem",
    "type": "object",
    "description": "An error (RFC 9457). Compare `type`; the other texts are for people.",
    "required": ["type", "title", "status", "detail"],
    "properties": {
        "type": {"type": "string", "enum": [BASE + name for name in TITLES]},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string", "description": "What is wrong and what to do."},
        "errors": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["field", "detail"],
                "properties": {"field": {"type": "string"}, "detail": {"type": "string"}},
            },
        },
    },
}
LIMITS = {
    "RateLimit-Limit": {"schema": {"type": "string"}, "description": "Requests per minute."},
    "RateLimit-Remaining": {"schema": {"type": "string"}, "description": "Requests left in this minute."},
    "RateLimit-Reset": {"schema": {"type": "string"}, "description": "Seconds until the next minute."},
}
IDEMPOTENCY = {
    "in": "header",
    "name": "Idempotency-Key",
    "required": False,
    "description": "A name for this request, such as a UUID. The same request gets the same answer for 24 hours.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]+$"},
}


def completed(schema: Any, api: NinjaAPI) -> Any:
    """Return the schema with errors, limits, idempotency and the scope of each route."""
    schema["components"]["schemas"]["Problem"] = PROBLEM
    scopes = _scopes(api)
    for path in schema["paths"].values():
        for method in METHODS:
            if method in path:
                _complete(path[method], method, scopes)
    return schema


def _complete(operation: dict[str, Any], method: str, scopes: dict[str, str]) -> None:
    for status in _errors_of(operation, method):
        operation["responses"].setdefault(status, _error(status))
    if method == "post":
        operation["parameters"].append(IDEMPOTENCY)
    scope = scopes[operation["operationId"]]
    needed = f"Needs the scope `{scope}`." if scope else "Any key may ask this."
    operation["description"] = f"{operation.get('description', '')}\n\n{needed}".strip()
    operation["x-scope"] = scope


def _errors_of(operation: dict[str, Any], method: str) -> list[str]:
    in_path = any(parameter["in"] == "path" for parameter in operation["parameters"])
    found = [*ALWAYS, *(["404"] if in_path or method != "get" else [])]
    return found if method == "get" else [*found, *WITH_BODY]


def _error(status: str) -> dict[str, Any]:
    content = {CONTENT_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    return {"description": ERRORS[status], "content": content, "headers": LIMITS if status == "429" else {}}


def _scopes(api: NinjaAPI) -> dict[str, str]:
    """Return the scope of each operation by its id; empty where any key may ask."""
    found: dict[str, str] = {}
    for router in api._get_bound_routers():
        for view in router.path_operations.values():
            for operation in view.operations:
                (needs,) = operation.auth_callbacks
                scope = needs.scope if isinstance(needs, Needs) else None
                found[api.get_openapi_operation_id(operation)] = scope.value if scope else ""
    return found
