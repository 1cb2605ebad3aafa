"""Finds the key of a request. The header Authorization is the only way in: a session's cookie opens nothing here."""

from dataclasses import dataclass
from typing import cast

from django.http import HttpRequest
from django.utils import timezone
from ninja.security import HttpBearer

from accounts.models import User
from api import keys
from api.models import ApiKey
from api.problems import ProblemError, refusal
from api.scopes import Scope


@dataclass(frozen=True, slots=True)
class Caller:
    """The key of a request, and the person whose rows it sees."""

    key: ApiKey

    @property
    def person(self) -> User:
        return self.key.person


class Needs(HttpBearer):
    """Lets requests through whose key has a scope, or any valid key where no scope is needed."""

    def __init__(self, scope: Scope | None = None) -> None:
        super().__init__()
        self.scope = scope

    def authenticate(self, request: HttpRequest, token: str) -> Caller:  # noqa: ARG002 - the door has read it
        """Return the caller whom the door has found; raises a problem where the key lacks the scope."""
        if self.scope is not None:
            require_scope(request, self.scope)
        return caller_of(request)


READ, SEND = Needs(Scope.READ), Needs(Scope.SEND)
STEER, MANAGE = Needs(Scope.STEER), Needs(Scope.MANAGE)
ANY = Needs()


def caller_of(request: HttpRequest) -> Caller:
    """Return the caller of a request that the door has let in."""
    return cast("Caller", request.caller)  # type: ignore[attr-defined]  # set by the door


def require_scope(request: HttpRequest, scope: Scope, why: str = "") -> None:
    """Raise a problem where the key lacks the scope; `why` says why it is needed where that is not obvious."""
    key = caller_of(request).key
    if scope.value not in key.scopes:
        detail = (
            f"{why} The key “{key}” does not have the scope “{scope.value}”. "
            "Use a key that has it, or make one on your page of API keys."
        )
        raise refusal(403, "missing-scope", detail.lstrip(), extra={"scope": scope.value})


def person_of(request: HttpRequest) -> User:
    return caller_of(request).person


def find_caller(request: HttpRequest) -> Caller:
    """Return who asks, and note the use of the key; raises a problem without a valid key."""
    scheme, _, secret = request.headers.get("Authorization", "").partition(" ")
    now = timezone.now()
    key = keys.find(secret.strip(), now=now) if scheme.lower() == "bearer" else None
    if key is None:
        raise _no_key(bool(secret))
    keys.note_use(key, address=request.META.get("REMOTE_ADDR", ""), now=now)
    return Caller(key)


def _no_key(given: bool) -> ProblemError:
    said = "The key is not known, has ended or was revoked." if given else "There is no key in the request."
    advice = "Send “Authorization: Bearer <key>” with a key from your page of API keys."
    challenge = 'Bearer realm="Paceline"' + (', error="invalid_token"' if given else "")
    return refusal(401, "no-key", f"{said} {advice}", headers={"WWW-Authenticate": challenge})
