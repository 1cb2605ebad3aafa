"""The address of a media file, for people who may see what its owner has."""

from collections.abc import Iterator

from django.contrib.auth.decorators import login_required
from django.core.files.storage import default_storage
from django.http import Http404, HttpRequest, StreamingHttpResponse
from django.utils.http import content_disposition_header
from django.views.decorators.http import require_GET

from accounts.access import seen
from accounts.downloads import streamed
from reminders.models import Media
from reminders.uploads import DOCUMENTS

PIECE = 64 * 1024


@login_required
@require_GET
def media(request: HttpRequest, pk: int) -> StreamingHttpResponse:
    """Return the file. Its content never changes, so browsers may cache it; documents are only downloaded."""
    found = seen(Media.objects.all(), request, pk)
    if not default_storage.exists(found.file.name or ""):
        raise Http404("The file is gone from the storage.")
    response = streamed(
        request,
        _pieces(found),
        content_type=found.content_type,
        disposition=content_disposition_header(found.content_type in DOCUMENTS, found.filename) or "inline",
    )
    response["Content-Length"] = str(found.size)
    response["Cache-Control"] = "private, max-age=86400, immutable"
    return response


def _pieces(found: Media) -> Iterator[bytes]:
    with found.file.open("rb") as file:
        while piece := file.read(PIECE):
            yield piece
