"""Login, with limits that stop guessing and do not lock out other people.

1. Five wrong passwords for one name from one address: that name is locked for that address (django-axes).
2. Fifty wrong passwords from one address, for any names: the address is locked.
3. A browser in which a person has logged in before carries a cookie that says so, for that name. Neither limit
   applies to it, since other people may use the same address; it has a limit of its own.

So a stranger can lock a name only for the stranger's own address, and a person behind a shared address cannot lock
out anybody who has logged in there before.
"""

import hashlib
import secrets
from http import HTTPStatus
from typing import Any

import structlog
from allauth.account.internal.flows.login import perform_password_login
from allauth.account.models import Login as Steps
from django import forms
from django.conf import settings
from django.contrib.auth.forms import AuthenticationForm, UsernameField
from django.contrib.auth.signals import user_login_failed
from django.contrib.auth.views import LoginView
from django.core import signing
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from redis.exceptions import RedisError

from accounts.models import User
from config.redis.client import client
from config.web.proxies import login_address

log = structlog.get_logger(__name__)

COOKIE = "paceline_known"
SALT = "paceline.login.known"
KNOWN_SECONDS = 180 * 24 * 3600
KNOWN_LIMIT = 10  # wrong passwords of a known browser, before it counts as unknown
LONGEST_NAME = 150


class LoginForm(AuthenticationForm):
    """Django's form, which accepts names of any length although the database does not."""

    username = UsernameField(max_length=LONGEST_NAME, widget=forms.TextInput(attrs={"autofocus": True}))
    password = forms.CharField(
        label="Password",
        strip=False,
        max_length=4096,
        widget=forms.PasswordInput(attrs={"autocomplete": "current-password"}),
    )


class Login(LoginView):
    authentication_form = LoginForm
    redirect_authenticated_user = True

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if _count(_of_address(request)) >= settings.LOGIN_ADDRESS_LIMIT and not is_known(
            request, _name(request)
        ):
            return _locked(request)
        return super().post(request, *args, **kwargs)

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        """Go on to the second factor, if the person has one; `people/adapters.py` remembers the browser at the end."""
        person = form.get_user()
        steps = Steps(user=person, redirect_url=self.get_success_url())
        response: HttpResponse = perform_password_login(
            self.request, {"username": person.get_username()}, steps
        )
        return response


def watch() -> None:
    """Count failed logins everywhere. Called once, when the app is ready."""
    user_login_failed.connect(_failed, dispatch_uid="login-failed")


def is_known(request: HttpRequest, name: str) -> bool:
    """Return whether this name has logged in from this browser before and has not failed too often since."""
    known = _read(request)
    return known is not None and known["name"] == name and _count(_of_browser(known["id"])) < KNOWN_LIMIT


def is_whitelisted(request: HttpRequest, credentials: dict[str, Any] | None = None) -> bool:
    """Return whether django-axes must not lock this request."""
    return is_known(request, (credentials or {}).get("username") or _name(request))


def _failed(request: HttpRequest | None = None, **_: Any) -> None:
    if request is None:
        return
    known = _read(request)
    if known is not None and is_known(request, _name(request)):
        _add(_of_browser(known["id"]))  # and not by its address, which other people share
    else:
        _add(_of_address(request))


def remember(response: HttpResponse, user: Any) -> None:
    said = {"name": user.get_username(), "id": secrets.token_urlsafe(12), "hash": _hash(user)}
    response.set_cookie(
        COOKIE,
        signing.dumps(said, salt=SALT),
        max_age=KNOWN_SECONDS,
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Lax",
        path="/login/",
    )


def _read(request: HttpRequest) -> dict[str, str] | None:
    """Return the browser's cookie, or None when it is missing, too old, forged, or older than the password."""
    try:
        said: dict[str, str] = signing.loads(
            request.COOKIES.get(COOKIE, ""), salt=SALT, max_age=KNOWN_SECONDS
        )
    except signing.BadSignature:
        return None
    user = User.objects.filter(username=said["name"]).first()
    return said if user is not None and _hash(user) == said["hash"] else None


def _hash(user: Any) -> str:
    return hashlib.sha256(user.get_session_auth_hash().encode()).hexdigest()[:16]


def _locked(request: HttpRequest) -> HttpResponse:
    log.warning("login_address_locked", address=login_address(request))
    response = render(request, "registration/locked_address.html", status=HTTPStatus.TOO_MANY_REQUESTS)
    response["Retry-After"] = str(_cooloff_seconds())
    return response


def _cooloff_seconds() -> int:
    return int(settings.AXES_COOLOFF_TIME * 3600)


def _name(request: HttpRequest) -> str:
    return request.POST.get("username", "")[:LONGEST_NAME]


def _of_address(request: HttpRequest) -> str:
    return f"paceline:login:address:{login_address(request)}"


def _of_browser(browser: str) -> str:
    return f"paceline:login:browser:{browser}"


def _count(key: str) -> int:
    """Return the number of failures, or 0 without Redis: the limit by name and address in PostgreSQL still holds."""
    try:
        return int(client().get(key) or 0)
    except RedisError:
        return 0


def _add(key: str) -> None:
    try:
        calls = client().pipeline()
        # Counted from the first failure: further guesses do not extend the lock of the address.
        calls.set(key, 0, ex=_cooloff_seconds(), nx=True)
        calls.incr(key)
        calls.execute()
    except RedisError:
        log.warning("login_failure_not_counted")
