"""Finds what an address names, for those who may see or touch it: others get 404, readers who write 403."""

from typing import TypeVar, cast

from django.db.models import Model, QuerySet
from django.http import HttpRequest, QueryDict
from django.shortcuts import get_object_or_404

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
