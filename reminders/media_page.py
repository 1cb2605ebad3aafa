"""Shows a media file to those who see its owner's things."""

from collections.abc import Iterator

from django.contrib.auth.decorators import login_required
from django.core.files.storage import default_storage
from django.http import Http404, HttpRequest, StreamingHttpResponse
from django.utils.http import content_disposition_header
from django.views.decorators.http import require_GET

from reminders.access import seen
from reminders.models import Media
from reminders.streaming import streamed
from reminders.uploads import DOCUMENTS

PIECE = 64 * 1024


@login_required
@require_GET
def media(request: HttpRequest, pk: int) -> StreamingHttpResponse:
    """The file. What it holds never changes, so a browser may keep it; documents are downloaded, never opened here."""
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
