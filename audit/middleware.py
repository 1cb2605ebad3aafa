"""Middleware that says where the changes of a request come from."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from django.urls import reverse

from audit.origin import Door, Origin, coming_from

DOORS = (("/notifications/move/", Door.PUSH), ("/unsubscribe/", Door.LINK), ("/hooks/", Door.SYSTEM))


class AuditOrigin:
    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        where = Origin(
            door=_door(request),
            address=request.META.get("REMOTE_ADDR", ""),
            person=getattr(request, "user", None),
        )
        with coming_from(where):
            return self.get_response(request)


def _door(request: HttpRequest) -> Door:
    if request.path_info.startswith(reverse("admin:index")):
        return Door.ADMIN
    found = (door for start, door in DOORS if request.path_info.startswith(start))
    return next(found, Door.PAGE)
