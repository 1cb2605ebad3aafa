"""Administration of people, and of the people they share with."""
# ruff: noqa: ARG002 - Django passes more than these need

from typing import Any

from django.contrib import admin
from django.contrib.auth.models import Group
from django.http import HttpRequest
from django.urls import reverse

from accounts.admin.recorded import Recorded
from accounts.admin.roles import RoleAdmin, is_staff, is_superuser
from accounts.generics import UserAdmin
from accounts.models import TeamMate, User

# Roles come from `accounts/roles.py`; groups of permissions would be a second, unnoticed source of them.
admin.site.unregister(Group)


@admin.register(User)
class PersonAdmin(Recorded, UserAdmin[User]):
    """Pages of people. Only superusers add and change them. Nobody is deleted: history names them."""

    list_display = ("username", "email", "first_name", "last_name", "role", "zone", "is_active", "last_login")
    list_filter = ("is_active", "is_staff", "is_superuser")
    search_fields = ("^username", "^email", "^first_name", "^last_name")
    filter_horizontal = ()
    readonly_fields = ("last_login", "date_joined")
    fieldsets = (
        (None, {"fields": ("username", "password")}),
        ("Person", {"fields": ("first_name", "last_name", "email", "zone", "region")}),
        (
            "Role",
            {
                "fields": ("is_active", "is_staff", "is_superuser"),
                "description": "An operator is only “active”, and sees their own data and what is shared with them. "
                "Staff see and change everything. Superusers also manage people.",
            },
        ),
        ("Dates", {"fields": ("last_login", "date_joined")}),
    )

    @admin.display(description="Role")
    def role(self, user: User) -> str:
        if user.is_superuser:
            return "Superuser"
        return "Staff" if user.is_staff else "Operator"

    def get_fieldsets(self, request: HttpRequest, obj: User | None = None) -> Any:
        sets = super().get_fieldsets(request, obj)
        if self.has_change_permission(request, obj):
            return sets
        return [(None, {"fields": ("username",)}), *sets[1:]]

    def get_view_on_site_url(self, obj: User | None = None) -> str | None:
        """Lead to the page that helps a person who cannot log in."""
        return reverse("people:recover", args=[obj.pk]) if obj else None

    def has_module_permission(self, request: HttpRequest) -> bool:
        return is_staff(request)

    def has_view_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        return is_staff(request)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return is_superuser(request)

    def has_change_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        return is_superuser(request)

    def has_delete_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        return False


@admin.register(TeamMate)
class TeamMateAdmin(RoleAdmin[TeamMate]):
    list_display = ("mate", "owner", "role")
    list_filter = ("role",)
    list_select_related = ("owner", "mate")
    search_fields = ("^owner__username", "^mate__username")
    autocomplete_fields = ("owner", "mate")
    ordering = ("-id",)
    fieldsets = (
        (
            None,
            {
                "fields": ("owner", "mate", "role"),
                "description": "The team member sees everything of the owner. Write: drafts and recipients. "
                "Send: schedule and steer. Manage: accounts, limits and people. Each includes those before it.",
            },
        ),
    )
