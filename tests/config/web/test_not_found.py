"""While developing, an address that leads nowhere shows the page that operators know."""

from django.http import HttpRequest, HttpResponse, HttpResponseNotFound, JsonResponse
from django.test import RequestFactory

from config.web.not_found import PlainNotFound


def answered(response: HttpResponse) -> HttpResponse:
    def view(_: HttpRequest) -> HttpResponse:
        return response

    return PlainNotFound(view)(RequestFactory().get("/nothing/"))


def test_djangos_list_of_addresses_is_replaced() -> None:
    page = answered(HttpResponseNotFound("<h1>Using the URLconf</h1>"))
    assert page.status_code == 404
    assert "Page not found" in page.content.decode()


def test_what_a_program_asked_for_stays() -> None:
    asked = JsonResponse({"error": "no such run"}, status=404)
    assert answered(asked) is asked
