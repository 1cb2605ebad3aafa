"""Tags: named lists of recipients."""

from collections.abc import Sequence

from django.http import HttpRequest
from ninja import Path, Query, Router, Status

from accounts.models import Recipient, Role, Tag
from accounts.recipients import tags
from accounts.roles import visible
from api.access import MANAGE, READ, person_of
from api.paging import page
from api.routes.rows import owner_for, require_send_for_tags, seen, touched
from api.schemas.base import Id, ListAsked, Page
from api.schemas.recipients import Tagged, TaggedCount, TagGiven, TagRenamed, TagShown

router = Router(tags=["Tags"])


@router.get("", response=Page[TagShown], auth=READ)
def list_tags(request: HttpRequest, asked: Query[ListAsked]) -> Page[TagShown]:
    """Return the tags by name."""
    return page(visible(Tag.objects.all(), person_of(request)), asked, shown, by="name")


@router.get("/{int:pk}", response=TagShown, auth=READ)
def show_tag(request: HttpRequest, pk: Path[Id]) -> TagShown:
    """Return one tag."""
    return shown([seen(Tag.objects.all(), request, pk)])[0]


@router.post("", response={201: TagShown}, auth=MANAGE)
def make_tag(request: HttpRequest, body: TagGiven) -> Status[TagShown]:
    """Make a tag; a name exists once per owner."""
    return Status(201, shown([tags.create(owner_for(request, body.owner, Role.WRITE), body.name)])[0])


@router.patch("/{int:pk}", response=TagShown, auth=MANAGE)
def rename_tag(request: HttpRequest, pk: Path[Id], body: TagRenamed) -> TagShown:
    """Rename a tag."""
    tag = touched(Tag.objects.all(), request, pk, Role.WRITE)
    tags.rename(tag, body.name, by=person_of(request))
    return shown([tag])[0]


@router.delete("/{int:pk}", response={204: None}, auth=MANAGE)
def delete_tag(request: HttpRequest, pk: Path[Id]) -> Status[None]:
    """Delete a tag; its recipients stay. Refused while a scheduled reminder uses it."""
    tags.delete(touched(Tag.objects.all(), request, pk, Role.WRITE), by=person_of(request))
    return Status(204, None)


@router.post("/{int:pk}/recipients", response=TaggedCount, auth=MANAGE)
def tag_recipients(request: HttpRequest, pk: Path[Id], body: Tagged) -> TaggedCount:
    """Give the tag to recipients of its owner, or take it from them; ids that are not there change nothing.

    Where a scheduled reminder goes to the tag, the key needs the scope `send` too.
    """
    tag, by = touched(Tag.objects.all(), request, pk, Role.WRITE), person_of(request)
    require_send_for_tags(request, tag.owner_id, [tag.name])
    added = tags.tag_all(Recipient.objects.filter(pk__in=body.add), tag, by=by) if body.add else 0
    gone = Recipient.objects.filter(pk__in=body.remove)
    return TaggedCount(added=added, removed=tags.untag_all(gone, tag, by=by) if body.remove else 0)


def shown(found: Sequence[Tag]) -> list[TagShown]:
    return [TagShown(id=tag.pk, owner=tag.owner_id, name=tag.name) for tag in found]
