"""Closes open pages when their reader may see less: at logout, and when a role, a team or a password changes.

Web push subscriptions are deleted when their person is deactivated or has a new password: somebody else may have the
browser now.
"""

from typing import Any

from django.contrib.auth.signals import user_logged_out
from django.db import transaction
from django.db.models.signals import post_delete, post_save

from accounts.models import TeamMate, User
from activity.models import PushSubscription
from activity.person_events import send_event


def watch() -> None:
    """Connect the signals. Called once, when the app is ready."""
    user_logged_out.connect(_logged_out, dispatch_uid="live-logged-out")
    post_save.connect(_person_changed, sender=User, dispatch_uid="live-person")
    for signal in (post_save, post_delete):
        signal.connect(_team_changed, sender=TeamMate, dispatch_uid="live-team")


def _logged_out(request: Any, user: User | None, **_: Any) -> None:
    """Close the pages of the session, which still exists at this moment and can be named."""
    if user is not None and request is not None:
        send_event(user.pk, "session.ended", session=request.session.session_key)


def _person_changed(instance: User, created: bool, update_fields: Any = None, **_: Any) -> None:
    if not created and set(update_fields or ("is_active",)) != {"last_login"}:
        _look_again(instance.pk)
    # `_password` is set when a person chooses a new password, and not when Django only hashes the old one again.
    if not created and (not instance.is_active or getattr(instance, "_password", None) is not None):
        PushSubscription.objects.filter(user=instance).delete()


def _team_changed(instance: TeamMate, **_: Any) -> None:
    _look_again(instance.mate_id)


def _look_again(user_id: int) -> None:
    transaction.on_commit(lambda: send_event(user_id, "access.changed"))
