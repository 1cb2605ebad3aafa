"""Files for messages: stored once per owner by their content."""

from collections.abc import Sequence

from django.http import HttpRequest
from ninja import File, Path, Query, Router, Status, UploadedFile

from accounts.models import Role
from accounts.roles import visible
from api.access import MANAGE, READ, person_of
from api.door import outside_transactions
from api.paging import page
from api.routes.rows import owner_for, seen
from api.schemas.base import Id, ListAsked, Page
from api.schemas.reminders import MediaShown
from reminders import uploads
from reminders.models import Media

router = Router(tags=["Media"])


@router.get("", response=Page[MediaShown], auth=READ)
def list_media(request: HttpRequest, asked: Query[ListAsked]) -> Page[MediaShown]:
    """Return the files, the newest first."""
    return page(visible(Media.objects.all(), person_of(request)), asked, _media, newest_first=True)


@router.get("/{int:pk}", response=MediaShown, auth=READ)
def show_media(request: HttpRequest, pk: Path[Id]) -> MediaShown:
    """Return one file's description."""
    return _media([seen(Media.objects.all(), request, pk)])[0]


@router.post("", response={201: MediaShown}, auth=MANAGE)
@outside_transactions
def upload_media(
    request: HttpRequest, file: File[UploadedFile], owner: Id | None = None
) -> Status[MediaShown]:
    """Upload a file. The same content is stored once: uploading it again returns the same id."""
    stored = uploads.store(file, owner=owner_for(request, owner, Role.WRITE))
    return Status(201, _media([stored])[0])


def _media(found: Sequence[Media]) -> list[MediaShown]:
    names = ("sha256", "filename", "content_type", "size", "created_at")
    return [
        MediaShown(id=media.pk, owner=media.owner_id, **{name: getattr(media, name) for name in names})
        for media in found
    ]
