"""Routes for what happened: the ledger of attempts, and replies."""

from collections.abc import Sequence

from django.db.models import QuerySet
from django.http import HttpRequest
from ninja import Path, Query, Router

from accounts.roles import visible
from activity.models import Attempt, Inbound
from api.access import READ, person_of
from api.paging import page
from api.routes.rows import seen
from api.schemas.base import Id, Page
from api.schemas.runs import AttemptsAsked, AttemptShown, RepliesAsked, ReplyShown

attempts = Router(tags=["Attempts"])
replies = Router(tags=["Replies"])


@attempts.get("", response=Page[AttemptShown], auth=READ)
def list_attempts(request: HttpRequest, asked: Query[AttemptsAsked]) -> Page[AttemptShown]:
    """Return the ledger: one row per message that left or may have left, the newest first."""
    rows = visible(Attempt.objects.all(), person_of(request))
    for name in ("account", "run", "outcome"):
        if (value := getattr(asked, name)) is not None:
            rows = rows.filter(**{name: value})
    if asked.since is not None:
        rows = rows.filter(at__gte=asked.since)
    if asked.until is not None:
        rows = rows.filter(at__lt=asked.until)
    return page(rows, asked, _attempts, by="at", newest_first=True)


@replies.get("", response=Page[ReplyShown], auth=READ)
def list_replies(request: HttpRequest, asked: Query[RepliesAsked]) -> Page[ReplyShown]:
    """Return what people wrote to your accounts, the newest first."""
    rows = visible(_messages(), person_of(request))
    for name in ("account", "recipient", "run"):
        if (value := getattr(asked, name)) is not None:
            rows = rows.filter(**{name: value})
    return page(rows, asked, _replies, newest_first=True)


@replies.get("/{int:pk}", response=ReplyShown, auth=READ)
def show_reply(request: HttpRequest, pk: Path[Id]) -> ReplyShown:
    """Return one reply."""
    return _replies([seen(_messages(), request, pk)])[0]


def _messages() -> QuerySet[Inbound]:
    return Inbound.objects.filter(kind=Inbound.Kind.MESSAGE)


def _attempts(found: Sequence[Attempt]) -> list[AttemptShown]:
    names = ("at", "action", "part", "attempt", "outcome", "provider_id", "error", "took_ms")
    return [
        AttemptShown(
            id=row.pk,
            owner=row.owner_id,
            account=row.account_id,
            run=row.run_id,
            target=row.target_id,
            **{name: getattr(row, name) for name in names},
        )
        for row in found
    ]


def _replies(found: Sequence[Inbound]) -> list[ReplyShown]:
    names = ("at", "sender", "subject", "text")
    return [
        ReplyShown(
            id=row.pk,
            account=row.account_id,
            recipient=row.recipient_id,
            run=row.run_id,
            target=row.target_id,
            **{name: getattr(row, name) for name in names},
        )
        for row in found
    ]
