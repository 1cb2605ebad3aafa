"""Middleware that shows times in the zone that the person chose."""

from collections.abc import Callable
from zoneinfo import ZoneInfo

from django.http import HttpRequest, HttpResponse
from django.utils import timezone


class DisplayZone:
    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        zone = getattr(request.user, "zone", "")
        with timezone.override(ZoneInfo(zone) if zone else None):
            return self.get_response(request)
