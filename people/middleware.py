"""Leads people without a second factor to the page that adds one, where the installation requires it."""

from collections.abc import Callable
from typing import Any

from channels.auth import get_user
from channels.db import database_sync_to_async
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from accounts.models import User
from activity.live.origin import Refusal
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


class HoldSockets:
    """Refuses the sockets of these people too: the events of a page say as much as the page."""

    def __init__(self, application: Any) -> None:
        self.application = application

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> Any:
        if settings.REQUIRE_MFA != "nobody" and await self._is_held(scope):
            return await Refusal()(scope, receive, send)
        return await self.application(scope, receive, send)

    async def _is_held(self, scope: dict[str, Any]) -> bool:
        person = await get_user(scope)
        return isinstance(person, User) and await database_sync_to_async(second_factor.is_missing)(person)
