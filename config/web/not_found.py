"""Shows the usual page for an unknown address also in debug mode: `make run` is for operators too."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse, HttpResponseNotFound
from django.shortcuts import render


class PlainNotFound:
    """Replaces Django's debug page, which lists every address that it knows."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        if type(response) is HttpResponseNotFound and response["Content-Type"].startswith("text/html"):
            return render(request, "404.html", status=404)
        return response
