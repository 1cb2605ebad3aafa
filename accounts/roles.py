"""Roles: the one place that every view, admin page, consumer and command asks who may see and change what.

Staff see and change everything. Everyone else sees their own rows and rows that a team mate shares with them, and
changes their own rows and those shared with them to operate.
"""

from typing import TYPE_CHECKING, TypeVar

from django.core.exceptions import PermissionDenied
from django.db.models import Model, Q, QuerySet

from accounts.models import TeamMate, User

if TYPE_CHECKING:
    from django.contrib.auth.models import AnonymousUser

M = TypeVar("M", bound=Model)

# The path from a row to its owner, where the row has no `owner` of its own.
OWNER_PATHS = {
    "accounts.AddressAlias": "account__owner",
    "accounts.GroupSync": "account__owner",
    "accounts.HealthChange": "account__owner",
    "accounts.Limit": "account__owner",
    "accounts.OwnLimits": "account__owner",
    "accounts.RefusedReports": "account__owner",
    "accounts.SenderDomain": "account__owner",
    "accounts.ConsentChange": "recipient__owner",
    "accounts.OwnAddress": "person",
    "accounts.TestMessage": "account__owner",
    "accounts.ImportRow": "job__owner",
    "accounts.Delivery": "webhook__owner",
    "accounts.ResultFeed": "webhook__owner",
    "accounts.User": "pk",
    "activity.AccountDay": "account__owner",
    "activity.Inbound": "account__owner",
    "activity.PushSubscription": "user",
    "delivery.MediaHandle": "run__owner",
    "delivery.RunAccount": "run__owner",
    "delivery.RunTarget": "run__owner",
    "reminders.FollowUp": "recipient__owner",
    "reminders.FollowUpStep": "reminder__owner",
    "reminders.Part": "reminder__owner",
    "reminders.ReminderAccount": "reminder__owner",
    "api.ApiKey": "person",
    "api.StoredAnswer": "key__person",
}

# Rows that belong to one person only: a team mate must not raise their own access, nor listen to another's browser.
NEVER_SHARED = frozenset(
    {
        "accounts.OwnAddress",
        "accounts.TeamMate",
        "accounts.User",
        "activity.PushSubscription",
        "api.ApiKey",
        "api.StoredAnswer",
    }
)

# Tables so large that it pays to look up the owners first: the planner uses the index on owners it is given.
ASKED_FIRST = frozenset({"accounts.Recipient", "activity.Attempt"})


def visible(rows: QuerySet[M], user: "User | AnonymousUser") -> QuerySet[M]:
    """Return those of `rows` that `user` may see."""
    return _limited(rows, user, (TeamMate.Access.READ, TeamMate.Access.OPERATE))


def touchable(rows: QuerySet[M], user: "User | AnonymousUser") -> QuerySet[M]:
    """Return those of `rows` that `user` may change."""
    return _limited(rows, user, (TeamMate.Access.OPERATE,))


def may_touch(row: Model, user: "User | AnonymousUser") -> bool:
    return touchable(type(row)._default_manager.filter(pk=row.pk), user).exists()


def require_touch(row: Model, user: "User | AnonymousUser") -> None:
    """Raise PermissionDenied with a sentence unless `user` may change `row`."""
    if not may_touch(row, user):
        raise PermissionDenied(f"You may not change {row}. Ask its owner or a staff member.")


def owners_for(user: User) -> QuerySet[User]:
    """Return the people for whom `user` may add something: first of all themselves."""
    people = User.objects.filter(is_active=True)
    if not user.is_staff:
        operates = TeamMate.objects.filter(mate=user, access=TeamMate.Access.OPERATE).values("owner")
        people = people.filter(Q(pk=user.pk) | Q(pk__in=operates))
    return people.order_by("username")


def owners_seen_by(user: User) -> list[int]:
    """Return the owners whose rows `user` sees: themselves and those who share. Staff see all others too."""
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
