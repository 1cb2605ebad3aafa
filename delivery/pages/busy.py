"""Answers a request when too many calls to services are running: 429 or 503, with the reason and a retry button."""

from collections.abc import Awaitable, Callable

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from delivery.sessions import calls

GetResponse = Callable[[HttpRequest], HttpResponse]
OURS = "csrfmiddlewaretoken"


class OutwardCalls:
    """Count calls to services per person, and show a page when a call is refused."""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse | Awaitable[HttpResponse]:
        with calls.on_behalf_of(request):
            return self.get_response(request)

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        return busy(request, error) if isinstance(error, calls.BusyError) else None


def busy(request: HttpRequest, error: calls.BusyError) -> HttpResponse:
    """Return a page with the reason, and a form that sends the typed values again."""
    typed = [(name, value) for name, values in request.POST.lists() for value in values if name != OURS]
    context = {"sentence": str(error), "status": int(error.status), "typed": typed, "method": request.method}
    response = render(request, "busy.html", context, status=error.status)
    response["Retry-After"] = str(calls.RETRY_SECONDS)
    response["Cache-Control"] = "no-store"
    return response
