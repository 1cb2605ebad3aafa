"""Approvals: what waits for a second person, and their decision."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from django.db.models import QuerySet
from django.http import HttpRequest
from ninja import Path, Query, Router

from accounts.approvals.requests import DecidedError, decidable, withdraw
from accounts.models import Approval, Role, User
from accounts.roles import visible
from api.access import READ, SEND, person_of
from api.paging import page
from api.problems import refusal
from api.routes.rows import seen, touched
from api.schemas.approvals import ApprovalsAsked, ApprovalShown, ApproveGiven, RefuseGiven
from api.schemas.base import Id, Page
from reminders.approvals import deciding

router = Router(tags=["Approvals"])
COLUMNS = (
    *("kind", "state", "title", "why", "recipients", "covers", "content", "asked_at", "expires_at"),
    *("decided_at", "reason"),
)


def _rows() -> QuerySet[Approval]:
    return Approval.objects.select_related("asked_by", "decided_by", "reminder")


@router.get("", response=Page[ApprovalShown], auth=READ)
def list_approvals(request: HttpRequest, asked: Query[ApprovalsAsked]) -> Page[ApprovalShown]:
    """Return the requests, the newest first."""
    by = person_of(request)
    rows = visible(_rows(), by)
    for name in ("state", "owner"):
        if (value := getattr(asked, name)) is not None:
            rows = rows.filter(**{name: value})
    return page(rows, asked, lambda found: _shown(found, by), newest_first=True)


@router.get("/{int:pk}", response=ApprovalShown, auth=READ)
def show_approval(request: HttpRequest, pk: Path[Id]) -> ApprovalShown:
    """Return one request. What it is about is at its reminder or run."""
    return _shown([seen(_rows(), request, pk)], person_of(request))[0]


@router.post("/{int:pk}/approve", response=ApprovalShown, auth=SEND)
def approve(request: HttpRequest, pk: Path[Id], body: ApproveGiven) -> ApprovalShown:
    """Approve it, and let it leave: at once, or at its time. Nobody approves what they asked for themselves."""
    found, by = touched(_rows(), request, pk, Role.SEND), person_of(request)
    with _refusals():
        deciding.approve(found, content=body.content, by=by)
    return show_approval(request, pk)


@router.post("/{int:pk}/refuse", response=ApprovalShown, auth=SEND)
def refuse(request: HttpRequest, pk: Path[Id], body: RefuseGiven) -> ApprovalShown:
    """Refuse it. Whoever asked reads the reason; a scheduled reminder is a draft again."""
    found, by = touched(_rows(), request, pk, Role.SEND), person_of(request)
    with _refusals():
        deciding.refuse(found, content=body.content, reason=body.reason, by=by)
    return show_approval(request, pk)


@router.post("/{int:pk}/withdraw", response=ApprovalShown, auth=SEND)
def withdraw_request(request: HttpRequest, pk: Path[Id]) -> ApprovalShown:
    """Take a request back."""
    found = touched(_rows(), request, pk, Role.SEND)
    with _refusals():
        withdraw(found, by=person_of(request))
    return show_approval(request, pk)


@contextmanager
def _refusals() -> Iterator[None]:
    try:
        yield
    except DecidedError as error:
        raise refusal(409, "wrong-state", str(error)) from error


def _shown(found: Sequence[Approval], by: User) -> list[ApprovalShown]:
    theirs = decidable((each for each in found if each.state == Approval.State.WAITING), by)
    return [_one(each, may_decide=each.pk in theirs) for each in found]


def _one(found: Approval, *, may_decide: bool) -> ApprovalShown:
    return ApprovalShown(
        id=found.pk,
        owner=found.owner_id,
        reminder=found.reminder_id,
        run=found.run_id,
        account=found.account_id,
        asked_by=str(found.asked_by or ""),
        decided_by=str(found.decided_by or ""),
        may_decide=may_decide,
        **{name: getattr(found, name) for name in COLUMNS},
    )
