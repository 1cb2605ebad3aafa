"""Handles requests that no browser and no service sends, before they reach a view."""

from collections.abc import Callable, Mapping
from typing import Any

from django.core.exceptions import SuspiciousOperation
from django.core.handlers.asgi import ASGIHandler, ASGIRequest
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBadRequest
from django.http.response import HttpResponseBase

NUL, NUL_IN_ADDRESS = "\x00", "%00"


class OddRequestError(SuspiciousOperation):
    """Raised for a malformed request; Django answers it with page 400."""


class Handler(ASGIHandler):
    """Answers 400 where Django cannot build a request, for example with a Content-Type in no encoding."""

    def create_request(
        self, scope: Mapping[str, Any], body_file: Any
    ) -> tuple[ASGIRequest, None] | tuple[None, HttpResponseBase]:
        try:
            return super().create_request(scope, body_file)
        except ValueError:
            return None, HttpResponseBadRequest()


class RefuseOddRequests:
    """Keeps NUL characters and odd encodings away from views.

    PostgreSQL cannot store a NUL, and no person means one: in the path it is 404, since no page has such an address; in
    a header 400. In a query it is removed, since a person may have pasted it into a search.

    Browsers send forms in UTF-8, and forms are read as UTF-8, whatever encoding the header names: Django would use that
    encoding, even where it is none for text, as "hex", or one in which a form can hold half characters.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if NUL in request.path_info:
            raise Http404("A NUL character is in the address.")
        if _in_headers(request):
            raise OddRequestError("A NUL character is in a header.")
        # Not by `encoding`, whose setter would first read the query in the old encoding.
        vars(request)["_encoding"] = None
        request.META["QUERY_STRING"] = _without(request.META.get("QUERY_STRING", ""))
        return self.get_response(request)


def _without(question: str) -> str:
    while NUL_IN_ADDRESS in question:  # removing one may join the parts of another
        question = question.replace(NUL_IN_ADDRESS, "")
    return question


def _in_headers(request: HttpRequest) -> bool:
    headers = (value for name, value in request.META.items() if name.startswith(("HTTP_", "CONTENT_")))
    return any(isinstance(value, str) and NUL in value for value in headers)
