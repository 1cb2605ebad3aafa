"""The people who use Paceline."""

from typing import Any

from django.contrib.auth.models import AbstractUser
from django.db import models
from django.db.models import F, Q

from accounts.regions import validate_region
from accounts.zones import validate_zone


class User(AbstractUser):
    """A person. Staff see everything; an operator sees what `accounts/roles.py` allows."""

    zone = models.CharField(
        "time zone",
        max_length=64,
        blank=True,
        validators=[validate_zone],
        help_text="Times are shown in this zone.",
    )
    region = models.CharField(
        "country of phone numbers",
        max_length=2,
        blank=True,
        db_default="",
        default="",
        validators=[validate_region],
        help_text="Two letters, such as MY: the country of numbers without a country code.",
    )
    calendar_number = models.PositiveIntegerField(
        default=0,
        db_default=0,
        editable=False,
        help_text="Part of the secret address of the calendar's feed.",
    )


class Role(models.TextChoices):
    """A right of a team member to the things of an owner. Each role includes those before it."""

    READ = "read", "Read"
    WRITE = "write", "Write"
    SEND = "send", "Send"
    MANAGE = "manage", "Manage"

    @property
    def holders(self) -> "tuple[Role, ...]":
        """Return the roles that include this one."""
        ranked = tuple(Role)
        return ranked[ranked.index(self) :]


class TeamMate(models.Model):
    """`mate` may do with the things of `owner` what the role says."""

    owner = models.ForeignKey(User, on_delete=models.CASCADE, related_name="mates")
    mate = models.ForeignKey(User, on_delete=models.CASCADE, related_name="teams")
    role = models.CharField(max_length=10, choices=Role, default=Role.READ, db_default=Role.READ)
    # What the release before 0.3 reads: "operate" for those who may do everything, "read" for all others.
    access = models.CharField(max_length=10, default="read", db_default="read", editable=False)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["owner", "mate"], name="teammate_once"),
            models.CheckConstraint(condition=~Q(owner=F("mate")), name="teammate_not_self"),
            models.CheckConstraint(condition=Q(access__in=["read", "operate"]), name="teammate_access_known"),
            models.CheckConstraint(condition=Q(role__in=Role.values), name="teammate_role_known"),
        ]

    def __str__(self) -> str:
        return f"{self.mate} in {self.owner}'s team"

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Save, and keep `access` in step with the role."""
        self.access = "operate" if self.role == Role.MANAGE else "read"
        if (fields := kwargs.get("update_fields")) is not None:
            kwargs["update_fields"] = {*fields, "access"}
        super().save(*args, **kwargs)
