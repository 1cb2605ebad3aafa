"""The stops of all sending: who stopped it, when and why, and who started it again."""

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Coalesce


class SendingStop(models.Model):
    """A stop of all sending: of one owner, or of everybody when it names no owner. Nothing is sent while it is open.

    Ended stops are kept: the table is the record of all stops, and has a few open rows at most.
    """

    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="sending_stops",
    )
    reason = models.CharField(max_length=200, blank=True)
    stopped_at = models.DateTimeField(auto_now_add=True)
    stopped_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    restored_to = models.DateTimeField(
        null=True,
        blank=True,
        help_text="After a restore, the moment of the restored data, until a person has decided about the messages "
        "that may have been sent since then. Sending cannot be started before.",
    )
    ended_at = models.DateTimeField(null=True, blank=True)
    ended_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(
                Coalesce("owner", 0),
                condition=Q(ended_at__isnull=True),
                name="sending_stop_one_at_a_time",
            )
        ]

    def __str__(self) -> str:
        return f"Stop of all sending of {self.owner}" if self.owner_id else "Stop of all sending"
