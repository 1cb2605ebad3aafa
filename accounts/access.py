"""Access to rows named in an address: people who may not see a row get 404, readers who try to write get 403."""

from typing import TypeVar, cast

from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme

from accounts.models import Role, User
from accounts.roles import require_touch, visible

M = TypeVar("M", bound=Model)


def user_of(request: HttpRequest) -> User:
    """Return the logged-in user. Use this in views behind `login_required`."""
    return cast("User", request.user)


def posted(request: HttpRequest) -> QueryDict | None:
    """Return the submitted form, which may be empty, or None when the page was only requested."""
    return request.POST if request.method == "POST" else None


def local_address(wanted: str) -> str:
    """Return the address if it is a path of this site, else an empty string: the value of a form can be forged."""
    safe = wanted.startswith("/") and url_has_allowed_host_and_scheme(wanted, allowed_hosts=None)
    return wanted if safe else ""


def seen(rows: QuerySet[M], request: HttpRequest, pk: int) -> M:
    return get_object_or_404(visible(rows, request.user), pk=pk)


def touched(rows: QuerySet[M], request: HttpRequest, pk: int, role: Role) -> M:
    """Return the row if the person may do with it what needs `role`."""
    row = seen(rows, request, pk)
    require_touch(row, request.user, role)
    return row


def staff_login(request: HttpRequest) -> HttpResponse:
    """Send people whom the admin refuses to the one login page, or show them the reason."""
    if request.user.is_authenticated and request.user.is_staff:
        return redirect("admin:index")
    if request.user.is_authenticated:
        raise PermissionDenied(
            "The administration is for staff. Your own accounts and reminders are on the pages of Paceline."
        )
    return redirect_to_login(request.GET.get("next", reverse("admin:index")))
