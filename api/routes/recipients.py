"""Recipients: the list, adding and updating many by address, consent, tags and fields."""

from collections.abc import Sequence
from typing import Literal

from django.db.models import QuerySet
from django.http import HttpRequest
from ninja import Path, Query, Router

from accounts.models import Recipient, Role
from accounts.recipients import add, bulk
from accounts.recipients.bulk import Given, ImportGoesOnError, Result
from accounts.recipients.change import change
from accounts.recipients.consent_actions import ACTIONS
from accounts.recipients.filters import RecipientFilter
from accounts.recipients.states import state_now
from activity.privacy.erase import erase
from activity.privacy.export import export
from api.access import MANAGE, READ, person_of
from api.paging import page
from api.problems import refusal
from api.routes.rows import owner_for, require_send_for_tags, seen, touched
from api.schemas.base import Id, Page
from api.schemas.recipients import (
    Erased,
    Erasure,
    PersonData,
    Reason,
    RecipientChanged,
    RecipientResult,
    RecipientResults,
    RecipientsAsked,
    RecipientsGiven,
    RecipientShown,
)

router = Router(tags=["Recipients"])
Consent = Literal["opt-out", "opt-in", "block", "unblock", "convert", "reopen"]


def _rows() -> QuerySet[Recipient]:
    return Recipient.objects.annotate(state=state_now()).prefetch_related("tags")


@router.get("", response=Page[RecipientShown], auth=READ)
def list_recipients(request: HttpRequest, asked: Query[RecipientsAsked]) -> Page[RecipientShown]:
    """Return the recipients by name; archived ones only where `state` asks for them."""
    chosen = RecipientFilter(
        q=asked.q.strip(),
        tag=asked.tag,
        state=asked.state or "",
        channel=asked.channel or "",
        account=asked.account,
    )
    rows = chosen.rows(person_of(request)).annotate(state=state_now()).prefetch_related("tags")
    return page(rows, asked, shown, by="name")


@router.get("/{int:pk}", response=RecipientShown, auth=READ)
def show_recipient(request: HttpRequest, pk: Path[Id]) -> RecipientShown:
    """Return one recipient."""
    return shown([seen(_rows(), request, pk)])[0]


@router.post("", response=RecipientResults, auth=MANAGE)
def put_recipients(request: HttpRequest, body: RecipientsGiven) -> RecipientResults:
    """Add up to 1,000 recipients, or update those whose address exists, all in one transaction.

    Each has a result of its own: one that is refused keeps no other from being saved. What is left out stays as it
    is, an archived recipient comes back, and consent never changes. To give a tag to which a scheduled reminder goes,
    the key needs the scope `send` too.
    """
    owner = owner_for(request, body.owner, Role.WRITE)
    require_send_for_tags(request, owner.pk, (tag for each in body.recipients for tag in each.tags))
    given = [
        Given(
            channel=each.channel.value,
            address=each.address,
            name=each.name,
            fields=each.fields,
            tags=each.tags,
            account_id=each.account,
        )
        for each in body.recipients
    ]
    try:
        results = [_outcome(index, result) for index, result in enumerate(bulk.put(owner, given))]
    except ImportGoesOnError as error:
        raise refusal(503, "busy", str(error), headers={"Retry-After": "30"}) from error
    counts = {word: sum(each.result == word for each in results) for word in ("added", "updated", "refused")}
    return RecipientResults(results=results, **counts)


@router.patch("/{int:pk}", response=RecipientShown, auth=MANAGE)
def change_recipient(request: HttpRequest, pk: Path[Id], body: RecipientChanged) -> RecipientShown:
    """Change the name, the variables or the tags of a recipient.

    To give or take a tag to which a scheduled reminder goes, the key needs the scope `send` too.
    """
    recipient = touched(Recipient.objects.all(), request, pk, Role.WRITE)
    if body.tags is not None:
        changed = set(body.tags) ^ set(recipient.tags.values_list("name", flat=True))
        require_send_for_tags(request, recipient.owner_id, changed)
    change(recipient, name=body.name, fields=body.fields, tags=body.tags, by=person_of(request))
    return show_again(pk)


@router.post("/{int:pk}/archive", response=RecipientShown, auth=MANAGE)
def archive_recipient(request: HttpRequest, pk: Path[Id]) -> RecipientShown:
    """Archive the recipient: nothing is sent to it any more; its history is kept."""
    add.archive(touched(Recipient.objects.all(), request, pk, Role.WRITE), by=person_of(request))
    return show_again(pk)


@router.post("/{int:pk}/unarchive", response=RecipientShown, auth=MANAGE)
def unarchive_recipient(request: HttpRequest, pk: Path[Id]) -> RecipientShown:
    """Bring an archived recipient back."""
    add.unarchive(touched(Recipient.objects.all(), request, pk, Role.WRITE), by=person_of(request))
    return show_again(pk)


@router.get("/{int:pk}/data", response=PersonData, auth=MANAGE)
def export_recipient(request: HttpRequest, pk: Path[Id]) -> PersonData:
    """Return everything about one person: the recipient, messages, replies, consent and changes. It is recorded."""
    found = export(seen(Recipient.objects.all(), request, pk), by=person_of(request))
    return PersonData(data=found)


@router.post("/{int:pk}/erase", response=Erased, auth=MANAGE)
def erase_recipient(request: HttpRequest, pk: Path[Id], body: Erasure) -> Erased:  # noqa: ARG001
    """Erase everything about one person; a keyed hash of the address stays, so that nothing is sent there again.

    It cannot be undone. Counts of runs stay.
    """
    recipient = touched(Recipient.objects.all(), request, pk, Role.MANAGE)
    return Erased(id=pk, erased=erase(recipient, by=person_of(request)))


@router.post("/{int:pk}/{action}", response=RecipientShown, auth=MANAGE)
def change_consent(request: HttpRequest, pk: Path[Id], action: Path[Consent], body: Reason) -> RecipientShown:
    """Opt out, opt in, block, unblock, convert or reopen a recipient. It applies before the next message leaves.

    Opt somebody in only at their explicit request, and say in `how` how they asked.
    """
    recipient = touched(Recipient.objects.all(), request, pk, Role.WRITE)
    ACTIONS[action].do(recipient, how=body.how, by=person_of(request))
    return show_again(pk)


def show_again(pk: int) -> RecipientShown:
    return shown([_rows().get(pk=pk)])[0]


def shown(recipients: Sequence[Recipient]) -> list[RecipientShown]:
    """Return recipients as lists show them."""
    return [_shown(recipient) for recipient in recipients]


def _shown(recipient: Recipient) -> RecipientShown:
    names = ("channel", "kind", "address", "name", "fields", "opted_out_at", "blocked_at", "converted_at")
    undeliverable = ("undeliverable_at", "undeliverable_for")
    times = ("cooldown_until", "last_inbound_at", "created_at", "archived_at")
    archived = recipient.archived_at is not None
    return RecipientShown(
        id=recipient.pk,
        owner=recipient.owner_id,
        account=recipient.account_id,
        tags=[tag.name for tag in recipient.tags.all()],
        state="archived" if archived else recipient.state,  # type: ignore[attr-defined]  # annotated
        **{name: getattr(recipient, name) for name in (*names, *undeliverable, *times)},
    )


def _outcome(index: int, result: Result) -> RecipientResult:
    if result.problem:
        return RecipientResult(index=index, result="refused", detail=result.problem)
    word: Literal["added", "updated"] = "added" if result.added else "updated"
    return RecipientResult(index=index, result=word, id=result.id, address=result.address)
