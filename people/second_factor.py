"""The second factor: whether it is asked of a person, wrong codes, and taking it off a lost device.

Wrong codes count like wrong passwords, by name and address (django-axes), so that six digits cannot be tried out.
"""

from collections.abc import Callable
from typing import Any

from allauth.core import context
from allauth.mfa.adapter import get_adapter
from allauth.mfa.base.forms import AuthenticateForm
from allauth.mfa.models import Authenticator
from allauth.mfa.signals import authenticator_added, authenticator_removed, authenticator_reset
from axes.handlers.proxy import AxesProxyHandler
from django import forms
from django.conf import settings
from django.contrib.auth.signals import user_login_failed
from django.core.exceptions import PermissionDenied
from django.db import transaction

from accounts.models import User
from audit.record import record
from people.sessions import end_sessions

CHANGES = {"added": authenticator_added, "removed": authenticator_removed, "made anew": authenticator_reset}
STRONG = (Authenticator.Type.TOTP, Authenticator.Type.WEBAUTHN)


class CodeForm(AuthenticateForm):  # type: ignore[misc]  # allauth has no types
    """allauth's form, with the limit of passwords."""

    def clean_code(self) -> str:
        credentials = {"username": self.user.get_username()}
        if not AxesProxyHandler.is_allowed(context.request, credentials):
            raise forms.ValidationError("Too many wrong codes. Wait for some minutes, then log in again.")
        return str(super().clean_code())

    def _emit_authentication_failed(self, authenticator: Any) -> None:
        super()._emit_authentication_failed(authenticator)
        user_login_failed.send(
            sender=__name__,
            credentials={"username": self.user.get_username()},
            request=context.request,
        )


def has(person: User) -> bool:
    return bool(get_adapter().is_mfa_enabled(person, STRONG))


def is_missing(person: User) -> bool:
    """Return whether this installation requires a second factor of the person, who has none yet."""
    asked = settings.REQUIRE_MFA == "everybody" or (settings.REQUIRE_MFA == "staff" and person.is_staff)
    return asked and not has(person)


@transaction.atomic
def reset(person: User, *, by: User) -> None:
    """Remove the second factor of a person who lost it, and log the person out everywhere; superusers only."""
    if not (by.is_active and by.is_superuser):
        raise PermissionDenied("Only a superuser may remove a second factor.")
    removed = sorted(Authenticator.objects.filter(user=person).values_list("type", flat=True))
    Authenticator.objects.filter(user=person).delete()
    end_sessions(person)
    record("person.two_factor_reset", person, by=by, before={"factors": removed})


def watch() -> None:
    """Begin to record each change that people make to their second factor. Called once, when the apps are ready."""
    for change, signal in CHANGES.items():
        signal.connect(_recording(change), weak=False, dispatch_uid=f"second-factor-{change}")


def _recording(change: str) -> Callable[..., None]:
    def note(*, user: User, authenticator: Authenticator, **_: Any) -> None:
        record("person.two_factor", user, by=user, note=f"{authenticator.get_type_display()}: {change}")

    return note
