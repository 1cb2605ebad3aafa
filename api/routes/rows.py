"""Finds the rows that a request names: 404 where the person may not see one, 403 where they may not change it."""

from collections.abc import Iterable
from typing import TypeVar

from django.core.exceptions import PermissionDenied
from django.db.models import Model, QuerySet
from django.http import HttpRequest
from django.shortcuts import get_object_or_404

from accounts.models import Role, User
from accounts.roles import owners_for, require_touch, visible
from api.access import person_of, require_scope
from api.problems import invalid
from api.scopes import Scope
from reminders.audience import scheduled_names_one_of

M = TypeVar("M", bound=Model)


def seen(rows: QuerySet[M], request: HttpRequest, pk: int) -> M:
    return get_object_or_404(visible(rows, person_of(request)), pk=pk)


def touched(rows: QuerySet[M], request: HttpRequest, pk: int, role: Role) -> M:
    """Return the row if the key's person may do with it what needs `role`."""
    row = seen(rows, request, pk)
    require_touch(row, person_of(request), role)
    return row


def owner_for(request: HttpRequest, owner: int | None, role: Role) -> User:
    """Return the person for whom something is added: the key's person, or one who gave them `role`."""
    person = person_of(request)
    if owner is None or owner == person.pk:
        return person
    found = owners_for(person, role).filter(pk=owner).first()
    if found is None:
        raise PermissionDenied(f"You may not add this for this owner. Ask them for the role {role.label}.")
    return found


def require_send_for_tags(request: HttpRequest, owner_id: int, tags: Iterable[str]) -> None:
    """Raise a problem where a tag decides who gets a scheduled reminder, and the key may not send."""
    wanted = set(tags)
    if wanted and scheduled_names_one_of(owner_id, wanted):
        require_scope(
            request,
            Scope.SEND,
            "A scheduled reminder goes to a tag that you give or take: it decides who gets it.",
        )


def all_of(rows: QuerySet[M], request: HttpRequest, ids: list[int], field: str) -> list[M]:
    """Return the rows with these ids in their order; raises a problem that names the ids that are not there."""
    found = {row.pk: row for row in visible(rows.filter(pk__in=ids), person_of(request))}
    missing = [pk for pk in ids if pk not in found]
    if missing:
        raise invalid(field, f"Not found: {', '.join(map(str, missing[:10]))}. Check the ids.")
    return [found[pk] for pk in dict.fromkeys(ids)]
