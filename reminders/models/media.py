"""Media files, each stored once by its content."""

from django.conf import settings
from django.db import models
from django.db.models import Q


def by_content(media: "Media", _filename: str) -> str:
    return f"{media.sha256[:2]}/{media.sha256}"


class Media(models.Model):
    """One file of one owner. The same content is stored once, under any file name."""

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="media")
    sha256 = models.CharField(max_length=64)
    filename = models.CharField(max_length=255)
    content_type = models.CharField(max_length=100)
    size = models.PositiveBigIntegerField()
    file = models.FileField(upload_to=by_content, max_length=120)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        verbose_name_plural = "media"
        constraints = [
            models.UniqueConstraint(fields=["owner", "sha256"], name="media_once"),
            models.CheckConstraint(condition=Q(sha256__regex=r"^[0-9a-f]{64}$"), name="media_hash_is_sha256"),
        ]

    def __str__(self) -> str:
        return self.filename
