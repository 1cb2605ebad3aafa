"""Finds what an address names, for those who may see or touch it: others get 404, readers who write 403."""

from typing import TypeVar, cast

from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse

from accounts.models import User
from accounts.roles import require_touch, visible

M = TypeVar("M", bound=Model)


def user_of(request: HttpRequest) -> User:
    """Who is logged in; for views behind `login_required`."""
    return cast("User", request.user)


def posted(request: HttpRequest) -> QueryDict | None:
    """What a form was sent, be it nothing at all; None where the page is only asked for."""
    return request.POST if request.method == "POST" else None


def seen(rows: QuerySet[M], request: HttpRequest, pk: int) -> M:
    return get_object_or_404(visible(rows, request.user), pk=pk)


def touched(rows: QuerySet[M], request: HttpRequest, pk: int) -> M:
    row = seen(rows, request, pk)
    require_touch(row, request.user)
    return row


def staff_login(request: HttpRequest) -> HttpResponse:
    """Where the admin sends whom it does not let in: to the one page for logging in, or to the reason."""
    if request.user.is_authenticated and request.user.is_staff:
        return redirect("admin:index")
    if request.user.is_authenticated:
        raise PermissionDenied("The administration is for staff. What is yours is on the pages of Paceline.")
    return redirect_to_login(request.GET.get("next", reverse("admin:index")))
