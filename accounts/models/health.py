"""The history of an account's health. `delivery/health/` judges it."""

from django.conf import settings
from django.db import models
from django.db.models import Q

from accounts.models.account import Account


class HealthChange(models.Model):
    """One change of an account's health, with its reason and the person, if a person made it."""

    class Move(models.TextChoices):
        SLOWED = "slowed", "Slowed down"
        PAUSED = "paused", "Paused"
        LIFTED = "lifted", "Lifted"
        RECOVERED = "recovered", "Recovered"

    account = models.ForeignKey(
        Account, on_delete=models.CASCADE, related_name="health_changes", db_index=False
    )
    move = models.CharField(max_length=10, choices=Move)
    at = models.DateTimeField()
    why = models.CharField(max_length=500)
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )

    class Meta:
        ordering = ["-at", "-id"]
        constraints = [
            models.CheckConstraint(
                condition=Q(move__in=["slowed", "paused", "lifted", "recovered"]), name="health_move_known"
            )
        ]
        indexes = [models.Index(fields=["account", "-at"], name="health_change_newest")]

    def __str__(self) -> str:
        return f"{self.account}: {self.get_move_display()}"
