"""The address of a media file, for people who may see what its owner has."""

from collections.abc import Iterator

import structlog
from django.contrib.auth.decorators import login_required
from django.core.files.storage import default_storage
from django.http import Http404, HttpRequest, StreamingHttpResponse
from django.utils.http import content_disposition_header
from django.views.decorators.http import require_GET

from accounts.access import seen
from accounts.downloads import streamed
from reminders.models import Media
from reminders.uploads import DOCUMENTS

log = structlog.get_logger(__name__)

PIECE = 64 * 1024


@login_required
@require_GET
def media(request: HttpRequest, pk: int) -> StreamingHttpResponse:
    """Return the file. Its content never changes, so browsers may cache it; documents are only downloaded."""
    found = seen(Media.objects.all(), request, pk)
    if not _is_there(found.file.name or ""):
        raise Http404("The file cannot be read from the storage.")
    response = streamed(
        request,
        _pieces(found),
        content_type=found.content_type,
        disposition=content_disposition_header(found.content_type in DOCUMENTS, found.filename) or "inline",
    )
    response["Content-Length"] = str(found.size)
    response["Cache-Control"] = "private, max-age=86400, immutable"
    return response


def _is_there(name: str) -> bool:
    try:
        return default_storage.exists(name)
    except OSError:
        log.exception("media_not_readable", file=name)
        return False


def _pieces(found: Media) -> Iterator[bytes]:
    with found.file.open("rb") as file:
        while piece := file.read(PIECE):
            yield piece
