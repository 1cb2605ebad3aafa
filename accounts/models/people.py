"""The people who use Paceline."""

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


class TeamMate(models.Model):
    """`mate` sees what belongs to `owner`, and may also change it when the access says so."""

    class Access(models.TextChoices):
        READ = "read", "Read only"
        OPERATE = "operate", "Operator"

    owner = models.ForeignKey(User, on_delete=models.CASCADE, related_name="mates")
    mate = models.ForeignKey(User, on_delete=models.CASCADE, related_name="teams")
    access = models.CharField(max_length=10, choices=Access, default=Access.READ)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["owner", "mate"], name="teammate_once"),
            models.CheckConstraint(condition=~Q(owner=F("mate")), name="teammate_not_self"),
            models.CheckConstraint(condition=Q(access__in=["read", "operate"]), name="teammate_access_known"),
        ]

    def __str__(self) -> str:
        return f"{self.mate} in {self.owner}'s team"
