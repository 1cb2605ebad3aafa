"""Creates, renames, merges and deletes tags. Each action is one statement, for any number of recipients."""

from collections.abc import Iterable

from django.db import IntegrityError, connection, transaction
from django.db.models import ManyToManyRel, OuterRef, QuerySet

from accounts.models import Recipient, Role, Tag, User
from accounts.paging import at_most_shown, shown, size_of
from accounts.roles import require_touch, touchable
from audit.record import record

Ties = Recipient.tags.through


class TagError(ValueError):
    """The tag cannot be changed like this. The text says why, and what to do."""


@transaction.atomic
def create(owner: User, name: str) -> Tag:
    name = _named(name)
    tag, made = Tag.objects.get_or_create(owner=owner, name=name)
    if not made:
        raise TagError(f"A tag “{name}” already exists.")
    record("tag.added", tag)
    return tag


def rename(tag: Tag, name: str, *, by: User) -> None:
    require_touch(tag, by, Role.WRITE)
    before, tag.name = {"name": tag.name}, _named(name)
    try:
        with transaction.atomic():
            tag.save(update_fields=["name"])
            record("tag.changed", tag, by=by, before=before, after={"name": tag.name})
    except IntegrityError as error:
        raise TagError(f"A tag “{tag.name}” already exists. Merge the two tags instead.") from error


@transaction.atomic
def merge(tag: Tag, *, into: Tag, by: User) -> None:
    """Give `into` to all recipients and reminders that have `tag`, then delete `tag`."""
    require_touch(tag, by, Role.WRITE)
    require_touch(into, by, Role.WRITE)
    if tag.pk == into.pk or tag.owner_id != into.owner_id:
        raise TagError("Choose a different tag of the same owner.")
    for relation in Tag._meta.related_objects:
        if isinstance(relation, ManyToManyRel) and relation.through is not None:
            _move(relation.through._meta.db_table, f"{relation.related_model._meta.model_name}_id", tag, into)
    record("tag.merged", tag, by=by, after={"into": into.name})
    tag.delete()


@transaction.atomic
def delete(tag: Tag, *, by: User) -> None:
    """Delete the tag. Raise TagError while a scheduled reminder uses it, because the audience would change."""
    require_touch(tag, by, Role.WRITE)
    waiting = tag.reminders.filter(status="scheduled", archived_at=None)
    if names := ", ".join(f"“{reminder}”" for reminder in waiting[:3]):
        raise TagError(f"The tag is used by {names}. Remove it there first, or merge it into another tag.")
    record("tag.removed", tag, by=by)
    tag.delete()


@transaction.atomic
def tag_all(recipients: QuerySet[Recipient], tag: Tag, *, by: User) -> int:
    """Add `tag` to the recipients of its owner that `by` may change; return how many did not have it before."""
    require_touch(tag, by, Role.WRITE)
    rows = touchable(recipients.filter(owner=tag.owner_id), by, Role.WRITE).order_by().values_list("pk")
    sql, params = rows.query.sql_with_params()
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {Ties._meta.db_table} (recipient_id, tag_id) "  # noqa: S608 - Django's own words
            f"SELECT found.id, %s FROM ({sql}) AS found(id) ON CONFLICT DO NOTHING",
            [tag.pk, *params],
        )
        tied = int(cursor.rowcount)
    record("tag.given", tag, by=by, after={"added_to": tied})
    return tied


@transaction.atomic
def untag_all(recipients: QuerySet[Recipient], tag: Tag, *, by: User) -> int:
    """Remove `tag` from the recipients; return how many had it."""
    require_touch(tag, by, Role.WRITE)
    found = recipients.filter(owner=tag.owner_id).order_by().values("pk")
    untied, _ = Ties.objects.filter(tag=tag, recipient__in=found).delete()
    record("tag.given", tag, by=by, after={"removed_from": untied})
    return untied


def size(tag: Tag) -> int:
    """Return how many recipients have the tag, counted as far as a page shows it."""
    return at_most_shown(Ties.objects.filter(tag=tag))


def with_sizes(rows: QuerySet[Tag]) -> QuerySet[Tag]:
    """Add the size of each tag; `show_sizes` makes it ready for a page."""
    return rows.annotate(size=size_of(Ties.objects.filter(tag=OuterRef("pk")).values("tag")))


def show_sizes(rows: Iterable[Tag]) -> None:
    for tag in rows:
        tag.size = shown(tag.size)  # type: ignore[attr-defined]  # annotated


def _named(name: str) -> str:
    name = " ".join(name.replace("\0", "").split())
    if not name or len(name) > 60:
        raise TagError("Enter a name of 1 to 60 characters.")
    if set(name) & set(",;|"):
        raise TagError("A tag name cannot contain commas, semicolons or bars (|). Choose another name.")
    return name


def _move(table: str, other: str, tag: Tag, into: Tag) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {table} ({other}, tag_id) SELECT {other}, %s FROM {table} WHERE tag_id = %s "  # noqa: S608
            "ON CONFLICT DO NOTHING",
            [into.pk, tag.pk],
        )
