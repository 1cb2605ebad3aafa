"""Keys of the API, and the answers that are kept for repeated requests."""

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

from accounts.encryption import EncryptedJSONField
from api.scopes import Scope


class ApiKey(models.Model):
    """A person's key. Only a hash of its secret is stored: the secret is shown once, when the key is made."""

    person = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="api_keys")
    name = models.CharField(max_length=80, help_text="The program that uses it.")
    prefix = models.CharField(max_length=12, unique=True, editable=False)
    digest = models.CharField(max_length=64, editable=False)
    scopes = ArrayField(models.CharField(max_length=10, choices=Scope))
    created_at = models.DateTimeField(auto_now_add=True)
    ends_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    used_at = models.DateTimeField(null=True, blank=True, editable=False)
    used_from = models.GenericIPAddressField(null=True, blank=True, editable=False)

    class Meta:
        verbose_name = "API key"
        ordering = ["-id"]
        constraints = [
            models.CheckConstraint(
                condition=Q(scopes__contained_by=[scope.value for scope in Scope]) & ~Q(scopes=[]),
                name="api_key_scopes_known",
            ),
            models.CheckConstraint(condition=Q(digest__regex=r"^[0-9a-f]{64}$"), name="api_key_is_hashed"),
        ]

    def __str__(self) -> str:
        return self.name


class StoredAnswer(models.Model):
    """The answer to a request with an Idempotency-Key: the same request gets it again for 24 hours."""

    key = models.ForeignKey(ApiKey, on_delete=models.CASCADE, related_name="answers", db_index=False)
    name = models.CharField(max_length=255, help_text="The Idempotency-Key.")
    fingerprint = models.CharField(max_length=64, help_text="A hash of the request.")
    status = models.PositiveSmallIntegerField(default=0, help_text="0 until the request is answered.")
    content_type = models.CharField(max_length=100, blank=True)
    body = EncryptedJSONField(
        blank=True, default=dict, help_text="Encrypted, since the answer may show a new secret."
    )
    created_at = models.DateTimeField()

    class Meta:
        ordering = ["-id"]
        constraints = [models.UniqueConstraint(fields=["key", "name"], name="answer_once_per_key")]
        indexes = [models.Index(fields=["created_at"], name="answer_by_age")]

    def __str__(self) -> str:
        return self.name
