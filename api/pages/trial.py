"""The page to try the API: every route from its own description, asked with a key that stays in the page."""

import json
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from api.site import api

METHODS = ("get", "post", "put", "patch", "delete")
MOST_DEPTH = 5
PLAIN = {"integer": 1, "number": 1, "boolean": False, "string": "", "object": {}}


@login_required
@require_safe
def try_out(request: HttpRequest) -> HttpResponse:
    """Show the routes by noun. The script of the page sends requests with the typed key, and with no cookie."""
    schema = api.get_openapi_schema(path_prefix="/api/v1/")
    groups: dict[str, list[dict[str, Any]]] = {}
    for path, operations in schema["paths"].items():
        for method in METHODS:
            if method in operations:
                route = _route(path, method, operations[method], schema)
                groups.setdefault(operations[method]["tags"][0], []).append(route)
    return render(request, "api/try.html", {"groups": groups})


def _route(path: str, method: str, operation: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    places: dict[str, list[Any]] = {"path": [], "query": [], "header": []}
    for parameter in operation["parameters"]:
        places[parameter["in"]].append(parameter)
    content = operation.get("requestBody", {}).get("content", {})
    body = content.get("application/json", {}).get("schema")
    return {
        "id": operation["operationId"],
        "method": method.upper(),
        "path": path,
        "description": operation["description"],
        "fields": [*places["path"], *places["query"], *places["header"]],
        "example": json.dumps(example(body, schema), indent=2) if body else "",
        "file": "multipart/form-data" in content,
    }


def example(found: dict[str, Any], schema: dict[str, Any], depth: int = 0) -> Any:
    """Return a value of the described shape, with the names of all its fields."""
    found = _resolved(found, schema)
    if "default" in found and depth:
        return found["default"]
    if "enum" in found:
        return found["enum"][0]
    match found.get("type"):
        case "object" if depth < MOST_DEPTH:
            fields = found.get("properties", {}).items()
            return {name: example(value, schema, depth + 1) for name, value in fields}
        case "array":
            return [example(found["items"], schema, depth + 1)] if found.get("minItems") else []
    return PLAIN.get(found.get("type", ""))


def _resolved(found: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    """Return the shape itself, for a reference or the first of several choices."""
    while True:
        choices = found.get("anyOf") or found.get("allOf") or found.get("oneOf")
        if "$ref" in found:
            found = schema["components"]["schemas"][found["$ref"].rsplit("/", 1)[-1]]
        elif choices and "default" not in found:
            found = choices[0]
        else:
            return found
