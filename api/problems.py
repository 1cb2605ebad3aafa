"""Errors as RFC 9457 problem details: a stable type, the field that is wrong, and what to do."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.http import HttpResponse

CONTENT_TYPE = "application/problem+json"
BASE = "urn:paceline:problem:"

# The title of each type. Programs compare types, which never change; titles are for people.
TITLES: Mapping[str, str] = {
    "bad-request": "The request cannot be read",
    "no-key": "A valid API key is needed",
    "missing-scope": "The key may not do this",
    "not-allowed": "The person of the key may not do this",
    "not-found": "There is nothing at this address",
    "no-such-method": "The address does not know this method",
    "wrong-state": "This is not possible now",
    "confirmation-needed": "The action gives something up and must be confirmed",
    "changed": "It is not what you looked at any more",
    "idempotency-key-reused": "The Idempotency-Key was used for another request",
    "in-progress": "The same request is still being answered",
    "too-large": "The request is too large",
    "wrong-media-type": "The body has another type than this address takes",
    "invalid": "The request has wrong values",
    "not-ready": "The reminder is not complete",
    "too-many-requests": "The key has used its requests of this minute",
    "busy": "Too much is going on right now",
    "error": "Something went wrong here",
}
OF_STATUS: Mapping[int, str] = {
    400: "bad-request",
    401: "no-key",
    403: "not-allowed",
    404: "not-found",
    405: "no-such-method",
    409: "wrong-state",
    413: "too-large",
    415: "wrong-media-type",
    422: "invalid",
    429: "too-many-requests",
    503: "busy",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One wrong value: where it is, and what to do about it."""

    field: str
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One error in all that is said about it."""

    status: int
    name: str
    detail: str
    faults: Sequence[Fault] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def body(self) -> dict[str, Any]:
        """Return the members of the problem; `errors` is there only where single values are wrong."""
        said: dict[str, Any] = {
            "type": BASE + self.name,
            "title": TITLES[self.name],
            "status": self.status,
            "detail": self.detail,
            **self.extra,
        }
        if self.faults:
            said["errors"] = [{"field": fault.field, "detail": fault.detail} for fault in self.faults]
        return said

    def response(self) -> HttpResponse:
        content = json.dumps(self.body)
        return HttpResponse(
            content, status=self.status, content_type=CONTENT_TYPE, headers=dict(self.headers)
        )


class ProblemError(Exception):
    """Raised to answer with a problem."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.detail)
        self.problem = problem


def refusal(
    status: int,
    name: str,
    detail: str,
    *,
    faults: Sequence[Fault] = (),
    extra: Mapping[str, Any] | None = None,
    headers: Mapping[str, str] | None = None,
) -> ProblemError:
    """Return the error to raise for a problem."""
    problem = Problem(
        status=status, name=name, detail=detail, faults=faults, extra=extra or {}, headers=headers or {}
    )
    return ProblemError(problem)


def invalid(field: str, detail: str) -> ProblemError:
    """Return the error for one wrong value."""
    return refusal(422, "invalid", detail, faults=[Fault(field=field, detail=detail)])


def of_status(status: int) -> Problem:
    """Return the problem for an answer that only has a status, as from a middleware."""
    name = OF_STATUS.get(status, "error" if status >= 500 else "bad-request")
    return Problem(status=status, name=name, detail=SENTENCES.get(name, f"{TITLES[name]}."))


SENTENCES: Mapping[str, str] = {
    "bad-request": "The request cannot be read. Check its address, its headers and its body.",
    "not-found": "There is nothing at this address. Check the path; /api/v1/openapi.json lists all paths.",
    "no-such-method": "This address does not know the method. The header Allow lists those that it knows.",
    "too-large": "The request is too large. Split it, or make the file smaller.",
    "error": "Something went wrong here. It was written to the log. Try again later.",
    "busy": "Too much is going on right now. Try again in a few seconds.",
}
