"""Accepts media files: only kinds that channels can send, recognized by content, each stored once per owner."""

import hashlib
import warnings
from typing import IO, Any

import filetype
import structlog
from django.conf import settings
from django.core.exceptions import RequestDataTooBig, ValidationError
from django.core.files.storage import default_storage
from django.core.files.uploadedfile import UploadedFile
from django.core.files.uploadhandler import FileUploadHandler
from django.db import transaction
from django.template.defaultfilters import filesizeformat
from PIL import Image

from accounts.models import User
from audit.record import record
from reminders.models import Media
from reminders.models.media import by_content

log = structlog.get_logger(__name__)

MEGABYTE = 1024 * 1024
REST_OF_THE_FORM = 2 * MEGABYTE
HEAD = 8192  # bytes by which a kind is recognized

IMAGES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
VIDEOS = frozenset({"video/mp4", "video/3gpp", "video/quicktime", "video/x-m4v", "video/webm"})
AUDIO = frozenset({"audio/mpeg", "audio/ogg", "audio/mp4", "audio/aac", "audio/amr", "audio/x-wav"})
DOCUMENTS = frozenset(
    {
        "application/pdf",
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    }
)
ALLOWED = IMAGES | VIDEOS | AUDIO | DOCUMENTS
KINDS = (
    "Pictures (JPEG, PNG, GIF, WebP), videos (MP4), sound (MP3, OGG, M4A), PDF, Word, Excel and PowerPoint"
)


class BadUploadError(ValidationError):
    """A file that is not accepted. The text is for the operator who chose it."""


class TooLargeError(BadUploadError):
    """A file larger than MEDIA_MAX_MB."""


class SizeGuard(FileUploadHandler):
    """Refuses a request that is larger than any file may be, before it fills the disk: page 413."""

    def handle_raw_input(
        self,
        input_data: IO[bytes],  # noqa: ARG002 - Django's signature
        META: dict[str, str],  # noqa: ARG002, N803
        content_length: int,
        boundary: str,  # noqa: ARG002
        encoding: str | None = None,  # noqa: ARG002
    ) -> None:
        if content_length > settings.MEDIA_MAX_MB * MEGABYTE + REST_OF_THE_FORM:
            raise RequestDataTooBig("The request is larger than MEDIA_MAX_MB.")

    def receive_data_chunk(self, raw_data: bytes, start: int) -> bytes:  # noqa: ARG002
        return raw_data

    def file_complete(self, file_size: int) -> None:  # noqa: ARG002
        return None


def store(upload: "UploadedFile[Any]", *, owner: User) -> Media:
    """Return the file as media of `owner`: the row that already holds the same content, or a new one."""
    content_type = _checked(upload)
    sha256 = _digest(upload)
    media = Media(
        owner=owner,
        sha256=sha256,
        filename=(upload.name or "file")[-255:],
        content_type=content_type,
        size=upload.size or 0,
    )
    known = Media.objects.filter(owner=owner, sha256=sha256).first()
    if known is not None:
        return known
    path = by_content(media, "")
    try:
        media.file.name = path if default_storage.exists(path) else default_storage.save(path, upload)
    except OSError as error:
        log.exception("media_not_stored")
        raise BadUploadError(f"{upload.name} could not be stored. Try again in a minute.") from error
    with transaction.atomic():
        Media.objects.bulk_create([media], ignore_conflicts=True)  # another tab may have sent the same file
        media = Media.objects.get(owner=owner, sha256=sha256)
        record("media.added", media, after={"size": media.size, "type": media.content_type})
    return media


def _checked(upload: "UploadedFile[Any]") -> str:
    """Return the kind of the file by its content."""
    most = settings.MEDIA_MAX_MB * MEGABYTE
    if not upload.size:
        raise BadUploadError(f"{upload.name} is empty. Choose another file.")
    if upload.size > most:
        raise TooLargeError(
            f"{upload.name} has {filesizeformat(upload.size)}; at most {filesizeformat(most)} can be sent. "
            "Make it smaller."
        )
    content_type = _kind(upload)
    if content_type not in ALLOWED:
        raise BadUploadError(f"{upload.name} is of a kind that cannot be sent. {KINDS} can.")
    if content_type in IMAGES and not _opens(upload):
        raise BadUploadError(
            f"{upload.name} is not a picture that can be opened. Save it anew and try again."
        )
    return content_type


def _kind(upload: "UploadedFile[Any]") -> str:
    upload.seek(0)
    found = filetype.guess(upload.read(HEAD))
    return str(found.mime) if found else ""


def _opens(upload: "UploadedFile[Any]") -> bool:
    upload.seek(0)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            Image.open(upload).verify()
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError, Image.DecompressionBombWarning):
        return False  # Pillow raises many different errors for a broken file
    finally:
        upload.seek(0)
    return True


def _digest(upload: "UploadedFile[Any]") -> str:
    digest = hashlib.sha256()
    for chunk in upload.chunks():
        digest.update(chunk)
    upload.seek(0)
    return digest.hexdigest()
