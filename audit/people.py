"""Records changes of people and of what they share, and log-ins, whoever makes them: pages, admin, commands.

These go by signals of Django: people are also changed by Django's own commands and by the packages for logging in.
"""

from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.signals import user_logged_in, user_logged_out, user_login_failed
from django.db.models import Model
from django.db.models.signals import post_save, pre_delete, pre_save

from audit.record import differing, record, stored, values_of

PERSON = (
    *("username", "first_name", "last_name", "email", "password", "is_active", "is_staff", "is_superuser"),
    *("zone", "region"),
)
MATE = ("owner_id", "mate_id", "role")
TRACKED = {"user": ("person", PERSON), "teammate": ("team", MATE)}


def watch() -> None:
    """Begin to record. Called once, when the apps are ready."""
    pre_save.connect(_look, dispatch_uid="audit-look")
    post_save.connect(_saved, dispatch_uid="audit-saved")
    pre_delete.connect(_deleted, dispatch_uid="audit-deleted")
    user_logged_in.connect(_logged_in, dispatch_uid="audit-logged-in")
    user_logged_out.connect(_logged_out, dispatch_uid="audit-logged-out")
    user_login_failed.connect(_failed, dispatch_uid="audit-failed")


def _kind(sender: type[Model]) -> str:
    return sender._meta.model_name or "" if sender._meta.app_label == "accounts" else ""


def _look(sender: type[Model], instance: Model, update_fields: Any = None, **_: Any) -> None:
    """Remember the row as it was before."""
    if (kind := _kind(sender)) in TRACKED:
        names = TRACKED[kind][1]
        wanted = update_fields is None or set(names) & set(update_fields)
        instance._audit_before = stored(instance, names) if wanted else None  # type: ignore[attr-defined]


def _saved(sender: type[Model], instance: Model, created: bool, **_: Any) -> None:
    if (kind := _kind(sender)) not in TRACKED:
        return
    (noun, names), before = TRACKED[kind], getattr(instance, "_audit_before", None)
    if before is None:
        return
    old, new = differing({} if created else before, values_of(instance, names))
    if new:
        record(f"{noun}.{'added' if created else 'changed'}", instance, before=old, after=new)


def _deleted(sender: type[Model], instance: Model, **_: Any) -> None:
    if _kind(sender) == "teammate":
        record("team.removed", instance, before=values_of(instance, MATE))


def _logged_in(user: Any, **_: Any) -> None:
    record("person.logged_in", user, by=user)


def _logged_out(user: Any = None, **_: Any) -> None:
    if user is not None:
        record("person.logged_out", user, by=user)


def _failed(credentials: Any, **_: Any) -> None:
    """Record a failed log-in with the person whom it was tried for; what else was typed may be a password."""
    model = get_user_model()
    name = str((credentials or {}).get("username") or "")[:150]
    person = model._base_manager.filter(**{model.USERNAME_FIELD: name}).first() if name else None
    record("person.login_failed", person, note="" if person else "a name that nobody has")
