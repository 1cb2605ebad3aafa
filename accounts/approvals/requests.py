"""The requests: asking, deciding, and who is told. What an approval does is in `reminders/approvals/deciding.py`.

Who calls `ask` holds the lock of what is asked about, so that two requests about the same cannot wait at once.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.utils import timezone

from accounts.approvals import rules
from accounts.models import Approval, Role, User
from accounts.models.approval import ApprovalQuerySet
from accounts.roles import require_touch, touchable
from activity.models import Notification
from activity.notify import tell
from audit.record import record

LASTS = timedelta(days=1)  # a request to do something now
MOST_STAFF = 20
State = Approval.State


class DecidedError(Exception):
    """The request cannot be decided like this any more. The text says why, and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A request that is not made yet: the thing that somebody wants to let leave."""

    owner_id: int
    kind: Approval.Kind
    title: str
    why: str
    content: str
    recipients: int = 0
    said: dict[str, Any] = field(default_factory=dict)
    reminder_id: int | None = None
    run_id: int | None = None
    account_id: int | None = None
    lasts: timedelta | None = None


@transaction.atomic
def ask(wanted: Wanted, *, by: User | None) -> Approval:
    """Return the request that waits; an older one about the same thing, but of something else, is withdrawn."""
    for known in same_as(wanted).waiting().select_for_update(no_key=True):
        if _is_asked(known, wanted, by):
            return known
        close(known, State.WITHDRAWN)
    made = Approval.objects.create(
        owner_id=wanted.owner_id,
        kind=wanted.kind,
        title=wanted.title[:200],
        why=wanted.why[:300],
        content=wanted.content,
        recipients=wanted.recipients,
        covers=rules.covers(wanted.recipients),
        said=wanted.said,
        reminder_id=wanted.reminder_id,
        run_id=wanted.run_id,
        account_id=wanted.account_id,
        asked_by=by,
        expires_at=timezone.now() + wanted.lasts if wanted.lasts else None,
    )
    record("approval.asked", made, by=by, after={"recipients": made.recipients, "why": made.why})
    _tell_deciders(made)
    return made


def _is_asked(known: Approval, wanted: Wanted, by: User | None) -> bool:
    """Decide whether a request that waits asks just this, and can still be decided."""
    same = (known.content, known.said, known.asked_by_id) == (wanted.content, wanted.said, _pk(by))
    over = known.expires_at is not None and known.expires_at <= timezone.now()
    return same and not over and known.covers >= wanted.recipients


def same_as(wanted: Wanted) -> ApprovalQuerySet:
    rows = Approval.objects.filter(owner=wanted.owner_id, kind=wanted.kind, reminder=wanted.reminder_id)
    if wanted.kind == Approval.Kind.HAND_OVER:
        rows = rows.filter(run=wanted.run_id)
    return rows.filter(account=wanted.account_id) if wanted.reminder_id is None else rows


def close(approval: Approval, state: State) -> bool:
    """End a request that nobody decided; return whether it still waited."""
    rows = Approval.objects.waiting().filter(pk=approval.pk)
    return bool(rows.update(state=state, decided_at=timezone.now()))


def close_of(
    reminder_id: int, kinds: Sequence[Approval.Kind], *, why: str = "", by: User | None = None
) -> None:
    """Withdraw what waits about a reminder that is not to be sent any more, or needs nobody any more.

    `why` is told to whoever asked, unless they did it themselves: The owner switched it off.
    """
    found = Approval.objects.waiting().filter(reminder=reminder_id, kind__in=kinds)
    for approval in list(found.select_related("reminder")):
        if close(approval, State.WITHDRAWN) and why:
            tell_withdrawn(approval, why, by=by)


def tell_withdrawn(approval: Approval, why: str, *, by: User | None) -> None:
    """Tell who asked that somebody else ended the request."""
    leaves = approval.kind in {Approval.Kind.REMINDER, Approval.Kind.SEND}
    tell_outcome(
        approval,
        {approval.asked_by_id} - {_pk(by)},
        title=f"{'Not sent' if leaves else 'Taken back'}: {approval.title}",
        body=f"{by or 'Somebody'} {why}",
        url=f"/reminders/{approval.reminder_id}/" if approval.reminder_id is not None else "",
        key=f"approval:{approval.pk}:ended",
    )


@transaction.atomic
def withdraw(approval: Approval, *, by: User) -> None:
    """Take a request back; who has the role may do so, and who asked."""
    if approval.asked_by_id != by.pk:
        require_touch(approval, by, Role.SEND)
    if not close(approval, State.WITHDRAWN):
        raise DecidedError(told_state(approval))
    record("approval.withdrawn", approval, by=by)
    tell_withdrawn(approval, "took the request for approval back.", by=by)


def take(approval: Approval, state: State, *, content: str, by: User, reason: str = "") -> Approval:
    """Decide a request once, for the content that the person saw; raise PermissionDenied or DecidedError."""
    require_decider(approval, by)
    now, seen = timezone.now(), content.replace("\0", "?")  # the database takes no null character
    rows = Approval.objects.waiting().filter(pk=approval.pk, content=seen).exclude(expires_at__lte=now)
    if not rows.update(state=state, decided_by=by, decided_at=now, reason=reason[:300]):
        raise DecidedError(told_state(approval))
    found = Approval.objects.select_related("asked_by", "owner").get(pk=approval.pk)
    verb = "approval.approved" if state == State.APPROVED else "approval.refused"
    record(verb, found, by=by, after={"recipients": found.recipients, "content": content}, note=reason)
    return found


def told_state(approval: Approval) -> str:
    """Return why a request cannot be decided as it was seen."""
    now = Approval.objects.select_related("decided_by").get(pk=approval.pk)
    if now.state in {State.APPROVED, State.REFUSED}:
        who = str(now.decided_by) if now.decided_by else "Somebody"
        return f"{who} has {'approved' if now.state == State.APPROVED else 'refused'} this already."
    if now.state == State.WITHDRAWN:
        return "This was changed or taken back since you looked. If it still waits, there is a new request."
    if now.state == State.EXPIRED or (now.expires_at and now.expires_at <= timezone.now()):
        return "Nobody decided in time. Whoever asked has to ask again."
    return "This was changed since you looked. Look at it again, then decide."


def require_decider(approval: Approval, by: User) -> None:
    """Raise PermissionDenied with a sentence unless the person may decide."""
    require_touch(approval, by, Role.SEND)
    if why := why_not(approval, by):
        raise PermissionDenied(why)


def why_not(approval: Approval, person: User) -> str:
    return rules.why_not(person.pk, asked_by=approval.asked_by_id, edited_by=edited_by(approval))


def decidable(approvals: Iterable[Approval], person: User) -> set[int]:
    """Return the ids of those that the person may decide; one query for all of them."""
    ids = [each.pk for each in approvals if not why_not(each, person)]
    rows = touchable(Approval.objects.filter(pk__in=ids), person, Role.SEND)
    return set(rows.values_list("pk", flat=True)) if ids else set()


def may_decide(approval: Approval, person: User) -> bool:
    return bool(decidable([approval], person))


def edited_by(approval: Approval) -> int | None:
    """Return who was the last to change what is sent."""
    if approval.kind not in {Approval.Kind.REMINDER, Approval.Kind.SEND} or approval.reminder is None:
        return None
    found: int | None = approval.reminder.edited_by_id
    return found


def others_of(owner_id: int, *, but: Iterable[int | None]) -> list[User]:
    """Return who else can let something leave for an owner: the owner, and the members with the role Send."""
    mates = User.objects.filter(teams__owner=owner_id, teams__role__in=Role.SEND.holders, is_active=True)
    owner = User.objects.filter(pk=owner_id, is_active=True)
    found = {person.pk: person for person in (*owner, *mates)}
    return [person for pk, person in found.items() if pk not in set(but)]


def deciders_of(approval: Approval) -> list[User]:
    """Return who is asked to decide: others of the team, else staff."""
    out = {approval.asked_by_id, edited_by(approval)}
    if found := others_of(approval.owner_id, but=out):
        return found
    staff = User.objects.filter(is_staff=True, is_active=True).exclude(pk__in=[pk for pk in out if pk])
    return list(staff.order_by("pk")[:MOST_STAFF])


def address_of(approval: Approval) -> str:
    return f"/approvals/{approval.pk}/"


def _tell_deciders(approval: Approval) -> None:
    for person in deciders_of(approval):
        tell(
            person.pk,
            Notification.Kind.APPROVAL,
            key=f"approval:{approval.pk}:asked",
            title=f"Approve? {approval.title}",
            body=f"{approval.asked_by or 'Paceline'} asks. {approval.why} Tap to look at it.",
            url=address_of(approval),
        )


def tell_outcome(
    approval: Approval, people: Iterable[int | None], *, title: str, body: str, url: str = "", key: str = ""
) -> None:
    """Tell people how a request ended, or what became of the moment that it was for."""
    for pk in {pk for pk in people if pk is not None}:
        tell(
            pk,
            Notification.Kind.APPROVAL,
            key=key or f"approval:{approval.pk}:{approval.state}",
            title=title,
            body=body,
            url=url or address_of(approval),
        )


@transaction.atomic
def expire(approval: Approval, *, body: str = "", but: int | None = None) -> bool:
    """End a request in time; tell who asked, the owner, and who could have decided, except for `but`."""
    if not close(approval, State.EXPIRED):
        return False
    approval.state = State.EXPIRED
    people = {approval.asked_by_id, approval.owner_id, *(each.pk for each in deciders_of(approval))} - {but}
    words = body or "Nobody decided within a day, so nothing was done. Ask again if it still matters."
    tell_outcome(approval, people, title=f"Not approved in time: {approval.title}", body=words)
    return True


def expire_all(now: datetime) -> int:
    """End the requests whose time is over."""
    rows = Approval.objects.ended(now).select_related("reminder")[:200]
    return sum(expire(approval) for approval in list(rows))


def _pk(person: User | None) -> int | None:
    return person.pk if person is not None else None
