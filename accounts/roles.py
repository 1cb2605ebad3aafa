"""Who may see and touch what: the one place that every view, admin page, consumer and command asks.

Staff see and touch everything. Everyone else sees what is theirs and what a team mate shares with them,
and touches what is theirs and what is shared with them to operate.
"""

from typing import TYPE_CHECKING, TypeVar

from django.core.exceptions import PermissionDenied
from django.db.models import Model, Q, QuerySet

from accounts.models import TeamMate, User

if TYPE_CHECKING:
    from django.contrib.auth.models import AnonymousUser

M = TypeVar("M", bound=Model)

# How to get from a row to its owner, where the row has no `owner` of its own.
OWNER_PATHS = {
    "accounts.GroupSync": "account__owner",
    "accounts.Limit": "account__owner",
    "accounts.ConsentChange": "recipient__owner",
    "accounts.ImportRow": "job__owner",
    "accounts.User": "pk",
    "activity.Inbound": "account__owner",
    "activity.PushSubscription": "user",
    "delivery.MediaHandle": "run__owner",
    "delivery.RunAccount": "run__owner",
    "delivery.RunTarget": "run__owner",
    "reminders.FollowUp": "recipient__owner",
    "reminders.FollowUpStep": "reminder__owner",
    "reminders.Part": "reminder__owner",
    "reminders.ReminderAccount": "reminder__owner",
}

# What belongs to a person alone: a team mate must not raise their own access, nor hear another's browser.
NEVER_SHARED = frozenset({"accounts.TeamMate", "accounts.User", "activity.PushSubscription"})

# So many rows that it pays to ask whose they may be first: the planner takes an index on owners that it is told.
ASKED_FIRST = frozenset({"accounts.Recipient", "activity.Attempt"})


def visible(rows: QuerySet[M], user: "User | AnonymousUser") -> QuerySet[M]:
    """Those of `rows` that `user` may see."""
    return _limited(rows, user, (TeamMate.Access.READ, TeamMate.Access.OPERATE))


def touchable(rows: QuerySet[M], user: "User | AnonymousUser") -> QuerySet[M]:
    """Those of `rows` that `user` may change."""
    return _limited(rows, user, (TeamMate.Access.OPERATE,))


def may_touch(row: Model, user: "User | AnonymousUser") -> bool:
    return touchable(type(row)._default_manager.filter(pk=row.pk), user).exists()


def require_touch(row: Model, user: "User | AnonymousUser") -> None:
    """Refuse with a sentence unless `user` may change `row`."""
    if not may_touch(row, user):
        raise PermissionDenied(f"{row} is not yours to change. Ask its owner or a staff member.")


def owners_for(user: User) -> QuerySet[User]:
    """The people in whose name `user` may make something new: themselves first of all."""
    people = User.objects.filter(is_active=True)
    if not user.is_staff:
        operates = TeamMate.objects.filter(mate=user, access=TeamMate.Access.OPERATE).values("owner")
        people = people.filter(Q(pk=user.pk) | Q(pk__in=operates))
    return people.order_by("username")


def owners_seen_by(user: User) -> list[int]:
    """Whose things `user` sees: their own, and those of whom shares with them. Staff see others' besides."""
    shared = TeamMate.objects.filter(mate=user).values_list("owner", flat=True)
    return [user.pk, *shared]


def owner_path(model: type[Model]) -> str:
    return OWNER_PATHS.get(model._meta.label, "owner")


def _limited(
    rows: QuerySet[M], user: "User | AnonymousUser", access: tuple[TeamMate.Access, ...]
) -> QuerySet[M]:
    if not isinstance(user, User) or not user.is_active:
        return rows.none()
    if user.is_staff:
        return rows
    path = owner_path(rows.model)
    if rows.model._meta.label in NEVER_SHARED:
        return rows.filter(**{path: user.pk})
    shared = TeamMate.objects.filter(mate=user, access__in=access).values_list("owner", flat=True)
    if rows.model._meta.label in ASKED_FIRST:
        return rows.filter(**{f"{path}__in": [user.pk, *shared]})
    return rows.filter(Q(**{path: user}) | Q(**{f"{path}__in": shared}))
