"""Addresses of programs that want to hear of events, and the events that are on their way to them."""

import json
import uuid

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

from accounts.encryption import EncryptedJSONField


class EventType(models.TextChoices):
    """The events that can be told. The words never change."""

    RUN_STARTED = "run.started", "Run started"
    RUN_PAUSED = "run.paused", "Run paused"
    RUN_RESUMED = "run.resumed", "Run resumed"
    RUN_FINISHED = "run.finished", "Run finished"
    RUN_TARGETS = "run.targets", "Results of recipients, in batches"
    ITEMS = "items.changed", "Items of queues, in batches"
    REPLY = "reply.received", "Reply received"
    OPTED_OUT = "recipient.opted_out", "Recipient opted out"
    OPTED_IN = "recipient.opted_in", "Recipient opted in"
    ACCOUNT = "account.changed", "Account stopped or started"


TEST = "webhook.test"


class Webhook(models.Model):
    """An address that gets signed events of one owner."""

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="webhooks")
    url = models.CharField("address", max_length=500)
    events = ArrayField(models.CharField(max_length=30, choices=EventType))
    secrets = EncryptedJSONField(editable=False, help_text="The secret that signs, and the one before it.")
    previous_until = models.DateTimeField(
        null=True, blank=True, editable=False, help_text="Until then the secret before it signs too."
    )
    # Without a constraint, so that the webhook of a person who was deleted is known as one, and stops.
    made_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.DO_NOTHING,
        null=True,
        blank=True,
        editable=False,
        db_constraint=False,
        db_index=False,
        related_name="+",
        help_text="Who chose its address, or switched it on last. It stops when they leave the owner's team.",
    )
    created_at = models.DateTimeField(auto_now_add=True)
    switched_off_at = models.DateTimeField(null=True, blank=True)
    switched_off_reason = models.CharField(max_length=255, blank=True)
    failing_since = models.DateTimeField(null=True, blank=True, editable=False)
    failures = models.PositiveIntegerField(default=0, editable=False, help_text="In a row.")
    retry_at = models.DateTimeField(
        null=True, blank=True, editable=False, help_text="Nothing is sent before."
    )
    busy_until = models.DateTimeField(
        null=True, blank=True, editable=False, help_text="Until then a worker has it."
    )
    served_at = models.DateTimeField(null=True, blank=True, editable=False)

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.CheckConstraint(
                condition=Q(events__contained_by=[event.value for event in EventType]) & ~Q(events=[]),
                name="webhook_events_known",
            )
        ]

    def __str__(self) -> str:
        return self.url

    @property
    def events_in_words(self) -> str:
        """Return the chosen events in the words of their form, in its order; "All events" where none is left out."""
        chosen = [str(event.label) for event in EventType if event in self.events]
        return "All events" if len(chosen) == len(EventType) else ", ".join(chosen)


class Delivery(models.Model):
    """One event for one webhook: first the outbox, then the log. Written in the transaction of the change."""

    class State(models.TextChoices):
        PENDING = "pending", "Waiting"
        DELIVERED = "delivered", "Delivered"
        GIVEN_UP = "given_up", "Given up"

    webhook = models.ForeignKey(Webhook, on_delete=models.CASCADE, related_name="deliveries", db_index=False)
    key = models.UUIDField(
        default=uuid.uuid4, editable=False, help_text="The id of the event for its receiver."
    )
    type = models.CharField(max_length=30)
    sequence = models.CharField(
        max_length=40, blank=True, help_text="Events of one sequence, such as a run, arrive in their order."
    )
    payload = models.JSONField()
    created_at = models.DateTimeField()
    give_up_at = models.DateTimeField()
    state = models.CharField(max_length=10, choices=State, default=State.PENDING)
    attempts = models.PositiveSmallIntegerField(default=0)
    next_try_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, blank=True)
    status = models.PositiveSmallIntegerField(null=True, blank=True, help_text="Of the last answer.")
    answer = models.TextField(
        blank=True, help_text="The beginning of the last answer, or why there was none."
    )

    class Meta:
        verbose_name_plural = "deliveries"
        ordering = ["-id"]
        constraints = [
            models.CheckConstraint(
                condition=Q(state__in=["pending", "delivered", "given_up"]), name="delivery_state_known"
            ),
            models.CheckConstraint(
                condition=Q(state="pending", ended_at__isnull=True)
                | (~Q(state="pending") & Q(ended_at__isnull=False)),
                name="delivery_ends_once",
            ),
        ]
        indexes = [
            models.Index(
                fields=["webhook", "next_try_at", "id"], condition=Q(state="pending"), name="delivery_due"
            ),
            models.Index(
                fields=["webhook", "sequence", "id"], condition=Q(state="pending"), name="delivery_in_order"
            ),
            models.Index(fields=["webhook", "-id"], name="delivery_log"),
            models.Index(fields=["ended_at"], condition=~Q(state="pending"), name="delivery_over"),
        ]

    def __str__(self) -> str:
        return f"{self.type} to {self.webhook}"

    @property
    def pretty(self) -> str:
        """Return the body in lines, for people."""
        return json.dumps(self.payload, indent=2, ensure_ascii=False)


class ResultFeed(models.Model):
    """How far the results of a run's recipients, or items, have been told to a webhook."""

    webhook = models.ForeignKey(Webhook, on_delete=models.CASCADE, related_name="feeds", db_index=False)
    run = models.ForeignKey("delivery.Run", on_delete=models.CASCADE, related_name="+")
    last_attempt = models.BigIntegerField(default=0, help_text="The last row of the ledger that was told.")
    last_skipped = models.BigIntegerField(default=0, help_text="The last skipped target that was told.")
    last_unconfirmed = models.BigIntegerField(default=0, help_text="The last unconfirmed one that was told.")
    done = models.BooleanField(default=False)

    class Meta:
        ordering = ["-id"]
        constraints = [models.UniqueConstraint(fields=["webhook", "run"], name="feed_once")]
        indexes = [models.Index(fields=["id"], condition=Q(done=False), name="feed_open")]

    def __str__(self) -> str:
        return f"Results of run {self.run_id} for {self.webhook}"
