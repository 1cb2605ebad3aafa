"""Finds the account that an address names: strangers get 404, readers who would change it 403."""

from typing import cast

from django.http import HttpRequest
from django.shortcuts import get_object_or_404

from accounts.models import Account, User
from accounts.roles import require_touch, visible


def user_of(request: HttpRequest) -> User:
    """Who is logged in; for views behind `login_required`."""
    return cast("User", request.user)


def seen_account(request: HttpRequest, pk: int) -> Account:
    rows = Account.objects.select_related("owner", "status_by")
    return get_object_or_404(visible(rows, request.user), pk=pk)


def touched_account(request: HttpRequest, pk: int) -> Account:
    account = seen_account(request, pk)
    require_touch(account, request.user)
    return account
