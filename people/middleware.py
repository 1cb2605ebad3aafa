"""Leads people without a second factor to the page that adds one, where the installation requires it."""

from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from accounts.models import User
from people import second_factor

OPEN = ("/me/", "/login/", "/logout/", "/static/", "/api/v1/", "/healthz", "/readyz", "/metrics")


class RequireSecondFactor:
    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if settings.REQUIRE_MFA != "nobody" and self._is_held(request):
            return redirect(reverse("people:me"))
        return self.get_response(request)

    def _is_held(self, request: HttpRequest) -> bool:
        person = request.user
        if request.path_info.startswith(OPEN) or not isinstance(person, User):
            return False
        return second_factor.is_missing(person)
