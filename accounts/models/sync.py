"""Readings of an account's groups, which become recipients."""

from django.conf import settings
from django.db import models
from django.db.models import Q

from accounts.models.account import Account


class GroupSync(models.Model):
    """One reading of an account's groups. At most one per account is under way."""

    account = models.ForeignKey(Account, on_delete=models.CASCADE, related_name="syncs")
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    started_at = models.DateTimeField(auto_now_add=True)
    progress_at = models.DateTimeField(auto_now=True)
    finished_at = models.DateTimeField(null=True, blank=True)
    seen = models.PositiveIntegerField(default=0)
    added = models.PositiveIntegerField(default=0)
    renamed = models.PositiveIntegerField(default=0)
    left = models.PositiveIntegerField(default=0, help_text="Groups that the account is no longer in.")
    error = models.CharField(max_length=500, blank=True)

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["account"], condition=Q(finished_at__isnull=True), name="group_sync_one_at_a_time"
            )
        ]

    def __str__(self) -> str:
        return f"Groups of {self.account}"
