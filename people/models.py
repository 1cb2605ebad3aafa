"""Invitations into a team."""

from datetime import datetime

from django.conf import settings
from django.db import models
from django.db.models import Q

from accounts.models import Role


class InvitationQuerySet(models.QuerySet["Invitation"]):
    def open(self, now: datetime) -> "InvitationQuerySet":
        """Return those that can still be accepted."""
        return self.filter(accepted_at=None, withdrawn_at=None, ends_at__gt=now)


class Invitation(models.Model):
    """A one-time address that makes whoever opens it a member of the owner's team. Only its hash is stored."""

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="invitations")
    made_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    email = models.EmailField()
    role = models.CharField(max_length=10, choices=Role, default=Role.READ)
    digest = models.CharField(max_length=64, unique=True, editable=False)
    mailed = models.BooleanField(
        default=False, help_text="The address was sent by mail and shown nowhere else: it proves the e-mail."
    )
    made_at = models.DateTimeField(auto_now_add=True)
    ends_at = models.DateTimeField()
    accepted_at = models.DateTimeField(null=True, blank=True)
    accepted_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    withdrawn_at = models.DateTimeField(null=True, blank=True)

    objects = InvitationQuerySet.as_manager()

    class Meta:
        ordering = ["-id"]
        indexes = [
            models.Index(
                fields=["owner", "-id"],
                condition=Q(accepted_at=None, withdrawn_at=None),
                name="invitation_open",
            )
        ]
        constraints = [
            models.CheckConstraint(condition=Q(role__in=Role.values), name="invitation_role_known"),
            models.CheckConstraint(
                condition=Q(accepted_at=None) | Q(withdrawn_at=None), name="invitation_ends_once"
            ),
        ]

    def __str__(self) -> str:
        return f"Invitation of {self.email}"
