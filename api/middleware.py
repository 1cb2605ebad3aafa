"""Makes every error below /api/ a problem, whoever answered it: a route, Django or another middleware."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

from api import problems

PREFIX = "/api/v1/"


class ProblemAnswers:
    """Comes first, so that it sees the refusals of all other middleware too."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        if not request.path.startswith(PREFIX):
            return response
        response.headers.setdefault("Cache-Control", "no-store")
        if response.status_code < 400 or response.headers["Content-Type"] == problems.CONTENT_TYPE:
            return response
        told = problems.of_status(response.status_code).response()
        for name in ("Allow", "Retry-After", "WWW-Authenticate"):
            if name in response.headers:
                told.headers[name] = response.headers[name]
        told.headers["Cache-Control"] = "no-store"
        return told
