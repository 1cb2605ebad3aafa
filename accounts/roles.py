"""Roles: the one place that every view, admin page, consumer and command asks who may see and change what.

Staff see and change everything. Everyone else does everything with their own rows, and with the rows of an owner who
made them a team member what their role says. `docs/people.md` lists the role that each action needs.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from django.core.exceptions import PermissionDenied
from django.db.models import Model, Q, QuerySet

from accounts.models import Role, TeamMate, User

if TYPE_CHECKING:
    from django.contrib.auth.models import AnonymousUser

M = TypeVar("M", bound=Model)

# The path from a row to its owner, where the row has no `owner` of its own.
OWNER_PATHS = {
    "accounts.AddressAlias": "account__owner",
    "accounts.Contact": "account__owner",
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
    "delivery.TargetContent": "target__run__owner",
    "queues.Item": "queue__owner",
    "queues.QueueAccount": "queue__owner",
    "queues.QueueImport": "queue__owner",
    "queues.SourceRead": "source__owner",
    "queues.SourceRow": "source__owner",
    "reminders.FollowUp": "recipient__owner",
    "reminders.FollowUpStep": "reminder__owner",
    "reminders.Part": "reminder__owner",
    "reminders.ReminderAccount": "reminder__owner",
    "activity.NotificationOutbox": "notification__owner",
    "notices.AccountEscalation": "account__owner",
    "notices.Escalation": "run__owner",
    "notices.Follow": "person",
    "notices.Notice": "address__person",
    "notices.NoticeAddress": "person",
    "notices.Preferences": "person",
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
        "audit.Entry",
        "audit.PersonalValues",
        "api.ApiKey",
        "api.StoredAnswer",
        "people.Invitation",
        "notices.Follow",
        "notices.Notice",
        "notices.NoticeAddress",
        "notices.Preferences",
    }
)

# Tables so large that it pays to look up the owners first: the planner uses the index on owners it is given.
ASKED_FIRST = frozenset({"accounts.Recipient", "activity.Attempt"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Rights:
    """The rights of a person to one row, for pages that show or hide buttons."""

    write: bool = False
    send: bool = False
    manage: bool = False

    def holds(self, role: Role) -> bool:
        return role == Role.READ or bool(getattr(self, role.value))


NONE, ALL = Rights(), Rights(write=True, send=True, manage=True)
RIGHTS = {"write": Role.WRITE.holders, "send": Role.SEND.holders, "manage": Role.MANAGE.holders}


def visible(rows: QuerySet[M], user: "User | AnonymousUser") -> QuerySet[M]:
    """Return those of `rows` that `user` may see."""
    return _limited(rows, user, Role.READ)


def touchable(rows: QuerySet[M], user: "User | AnonymousUser", role: Role) -> QuerySet[M]:
    """Return those of `rows` with which `user` may do what needs `role`."""
    return _limited(rows, user, role)


def may_touch(row: Model, user: "User | AnonymousUser", role: Role) -> bool:
    if _owns(row, user):
        return True
    return touchable(type(row)._default_manager.filter(pk=row.pk), user, role).exists()


def _owns(row: Model, user: "User | AnonymousUser") -> bool:
    """Return whether the row is the person's own: owners may do everything, and nothing has to be looked up."""
    if not isinstance(user, User) or not user.is_active or row.pk is None:
        return False
    return owner_path(type(row)) == "owner" and getattr(row, "owner_id") == user.pk  # noqa: B009 - see `_owner_of`


def require_touch(row: Model, user: "User | AnonymousUser", role: Role) -> None:
    """Raise PermissionDenied with a sentence unless `user` may do with `row` what needs `role`."""
    if not may_touch(row, user, role):
        raise PermissionDenied(f"You may not change {row}. Ask its owner for the role {role.label}.")


def rights_on(row: Model, user: "User | AnonymousUser") -> Rights:
    """Return what `user` may do with a row that they see."""
    if not isinstance(user, User) or not user.is_active:
        return NONE
    if user.is_staff:
        return ALL
    owner = _owner_of(row)
    if owner == user.pk:
        return ALL
    if row._meta.label in NEVER_SHARED:
        return NONE
    role = TeamMate.objects.filter(mate=user, owner=owner).values_list("role", flat=True).first()
    return Rights(**{name: role in holders for name, holders in RIGHTS.items()})


def owners_for(user: User, role: Role) -> QuerySet[User]:
    """Return the people with whose things `user` may do what needs `role`: first of all themselves."""
    people = User.objects.filter(is_active=True)
    if not user.is_staff:
        people = people.filter(Q(pk=user.pk) | Q(pk__in=_shared_with(user, role)))
    return people.order_by("username")


def owners_seen_by(user: User) -> list[int]:
    """Return the owners whose rows `user` sees: themselves and those who share. Staff see all others too."""
    return [user.pk, *_shared_with(user, Role.READ)]


def owner_path(model: type[Model]) -> str:
    return OWNER_PATHS.get(model._meta.label, "owner")


def _owner_of(row: Model) -> int | None:
    path = owner_path(type(row))
    if path == "owner":
        owner: int | None = getattr(row, "owner_id")  # noqa: B009 - not every model has it
        return owner
    return type(row)._default_manager.filter(pk=row.pk).values_list(path, flat=True).first()


def _shared_with(user: User, role: Role) -> QuerySet[TeamMate, int]:
    """Return the ids of the owners who gave the person this role, or one that includes it."""
    return TeamMate.objects.filter(mate=user, role__in=role.holders).values_list("owner", flat=True)


def _limited(rows: QuerySet[M], user: "User | AnonymousUser", role: Role) -> QuerySet[M]:
    if not isinstance(user, User) or not user.is_active:
        return rows.none()
    if user.is_staff:
        return rows
    path = owner_path(rows.model)
    if rows.model._meta.label in NEVER_SHARED:
        return rows.filter(**{path: user.pk})
    shared = _shared_with(user, role)
    if rows.model._meta.label in ASKED_FIRST:
        return rows.filter(**{f"{path}__in": [user.pk, *shared]})
    return rows.filter(Q(**{path: user}) | Q(**{f"{path}__in": shared}))
