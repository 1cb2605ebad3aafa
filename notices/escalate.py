"""Tells of a run or an account that waits for a person too long: its owner again, then one team member after the other.

1. `begin` or `begin_account`, when the owner was notified of something that waits.
2. After as many minutes as the owner or the installation chose, the owner is told again.
3. After as many again the next person: the first of the owner's list who is a team member still, active, may decide,
   and was not told yet. And so on.
4. What goes on is asked about later, in case it waits again; a run that has ended without a question is forgotten.
"""

from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import transaction

from accounts.models import Account, Role, TeamMate, User
from accounts.roles import may_touch
from activity.models import Notification
from activity.notify import tell
from delivery.models import Run
from delivery.states import SETTLED_RUN, PauseReason
from notices.models import AccountEscalation, Escalation
from notices.preferences import preferences_of

AT_ONCE = 200
Kind = Notification.Kind
# A run that has ended may wait too: for a decision about messages of which nobody knows whether they arrived.
BEGINS = frozenset({Kind.PAUSED, Kind.APPROVAL, Kind.PARTIAL, Kind.FAILED, Kind.CANCELED})

Waits = Escalation | AccountEscalation


def begin(run: Run, *, now: datetime) -> None:
    """Remember that the run waits from now on, if it needs a person."""
    minutes = minutes_of(run.owner)
    if minutes and needs_a_person(run):
        again = now + timedelta(minutes=minutes)
        Escalation.objects.update_or_create(run=run, defaults={"since": now, "told": [], "next_at": again})


def begin_account(account_id: int, *, now: datetime) -> None:
    """Remember that the account waits from now on, if it needs a person and is not waiting already."""
    account = Account.objects.select_related("owner").filter(pk=account_id).first()
    if account is None or not account_needs_a_person(account) or not (minutes := minutes_of(account.owner)):
        return
    if account.status_changed_at is not None:  # it works meanwhile, and waits again
        AccountEscalation.objects.filter(account=account, since__lt=account.status_changed_at).delete()
    begun = {"since": now, "next_at": now + timedelta(minutes=minutes)}
    AccountEscalation.objects.get_or_create(account=account, defaults=begun)


def needs_a_person(run: Run) -> bool:
    """Return whether the run goes on only when a person does something, and it was not a person who paused it."""
    if run.status in SETTLED_RUN:
        return bool(run.unconfirmed) and run.archived_at is None and run.details_removed_at is None
    if run.pause_reason == PauseReason.ACCOUNT_FLAGGED:
        return run.canceled_at is None
    return run.waits_for_a_person and run.pause_reason != PauseReason.OPERATOR


def account_needs_a_person(account: Account) -> bool:
    """Return whether its service blocked the account or logged it out: no account comes back from that by itself."""
    return account.status == Account.Status.FLAGGED and account.archived_at is None


def minutes_of(owner: User) -> int:
    """Return how long a run of the owner may wait; 0 where nobody is told again."""
    chosen = preferences_of(owner).escalate_minutes
    return int(settings.ESCALATE_AFTER_MINUTES) if chosen is None else chosen


def escalate(now: datetime) -> int:
    """Tell of what waits too long; return how many people were told."""
    return sum(
        _next(model, pk, now=now) for model in (Escalation, AccountEscalation) for pk in _due(model, now)
    )


def _due(model: type[Waits], now: datetime) -> list[int]:
    due = model._default_manager.filter(next_at__lte=now).order_by("next_at", "pk")
    return list(due.values_list("pk", flat=True)[:AT_ONCE])


@transaction.atomic
def _next(model: type[Waits], pk: int, *, now: datetime) -> bool:
    """Tell the next person of one run or account; return whether there was one to tell."""
    found = _locked(model, pk, now)
    if found is None:
        return False
    minutes = minutes_of(subject_of(found).owner)
    if _is_over(found) or not minutes:
        found.delete()
        return False
    found.next_at = now + timedelta(minutes=minutes)
    told = _told_next(found, now=now) if _needs(found) else _looked_at(found, now=now)
    found.save(update_fields=["told", "since", "next_at"])
    return told


def _locked(model: type[Waits], pk: int, now: datetime) -> Waits | None:
    rows: Any = model._default_manager.select_for_update(skip_locked=True, of=("self",))
    if model is Escalation:
        rows = rows.select_related("run__owner").defer("run__parts")
    else:
        rows = rows.select_related("account__owner")
    found: Waits | None = rows.filter(pk=pk, next_at__lte=now).first()
    return found


def subject_of(found: Waits) -> Run | Account:
    """Return the run or the account that waits."""
    return found.run if isinstance(found, Escalation) else found.account


def _needs(found: Waits) -> bool:
    if isinstance(found, Escalation):
        return needs_a_person(found.run)
    return account_needs_a_person(found.account) and not _told_by_its_runs(found)


def _told_by_its_runs(found: AccountEscalation) -> bool:
    """Return whether a run that waits for this account is told of: once is enough."""
    rows = Escalation.objects.filter(run__run_accounts__account=found.account_id, next_at__isnull=False)
    return rows.filter(run__pause_reason=PauseReason.ACCOUNT_FLAGGED, run__canceled_at=None).exists()


def _is_over(found: Waits) -> bool:
    """Return whether it waits for nobody any more: a run that ended, an account that works or was archived."""
    if isinstance(found, Escalation):
        return found.run.status in SETTLED_RUN and not needs_a_person(found.run)
    return not account_needs_a_person(found.account)


def _told_next(found: Waits, *, now: datetime) -> bool:
    person = next_person(subject_of(found), found.told)
    if person is None:
        found.next_at = None
        return False
    _tell(found, person, now=now)
    found.told.append(person.pk)
    return True


def _looked_at(found: Waits, *, now: datetime) -> bool:
    """Begin anew with what goes on: if it waits at the next look, its owner is the first to be told."""
    found.told, found.since = [], now
    return False


def next_person(subject: Run | Account, told: list[int]) -> User | None:
    """Return who is told next: the owner, then team members in the owner's order, of those who can decide now."""
    if subject.owner_id not in told and subject.owner.is_active:
        return subject.owner
    order = preferences_of(subject.owner).next_people
    role = Role.SEND if isinstance(subject, Run) else Role.MANAGE  # only they can connect an account again
    mates = TeamMate.objects.filter(owner=subject.owner_id, mate__in=order, mate__is_active=True)
    people = {each.mate_id: each.mate for each in mates.select_related("mate")}
    left = (people[pk] for pk in order if pk in people and pk not in told)
    return next((person for person in left if may_touch(subject, person, role)), None)


def _tell(found: Waits, person: User, *, now: datetime) -> None:
    subject, waited = subject_of(found), int((now - found.since).total_seconds() // 60)
    whose = "" if person == subject.owner else f" It is {subject.owner}'s."
    run = subject if isinstance(subject, Run) else None
    name = "account" if run is None else "run"
    why = _reason_of(subject) if isinstance(subject, Account) else subject.summary
    tell(
        person.pk,
        Kind.WAITING,
        key=f"{name}:{subject.pk}:waiting:{found.since:%Y%m%d%H%M%S}",
        title=f"{subject.name[:100]} waits for you",
        body=f"Nobody has decided for {waited} minutes.{whose} {why}"[:480],
        url=f"/accounts/{subject.pk}/" if run is None else _page_of(run),
        run_id=run.pk if run else None,
    )


def _reason_of(account: Account) -> str:
    return f"The account is {account.get_status_display().lower()}: {account.status_reason.rstrip('.')}."


def _page_of(run: Run) -> str:
    """Return the page on which a person decides: that of the run where messages are in doubt."""
    reminder = f"/reminders/{run.reminder_id}/"
    return f"{reminder}runs/{run.pk}/" if run.status in SETTLED_RUN else reminder
