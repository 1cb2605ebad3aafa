"""Tells of a run that waits for a person too long: its owner again, then one team member after the other.

1. `begin`, when the owner was notified that a run waits.
2. After as many minutes as the owner or the installation chose, the owner is told again.
3. After as many again the next person: the first of the owner's list who is a team member still, active, may decide,
   and was not told yet. And so on.
4. A run that goes on is asked about later, in case it waits again; one that has ended is forgotten.
"""

from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction

from accounts.models import Role, TeamMate, User
from accounts.roles import may_touch
from activity.models import Notification
from activity.notify import tell
from delivery.models import Run
from delivery.states import SETTLED_RUN, PauseReason
from notices.models import Escalation
from notices.preferences import preferences_of

AT_ONCE = 200
BEGINS = frozenset({Notification.Kind.PAUSED, Notification.Kind.APPROVAL})


def begin(run: Run, *, now: datetime) -> None:
    """Remember that the run waits from now on, if it needs a person."""
    minutes = minutes_of(run.owner)
    if minutes and needs_a_person(run):
        again = now + timedelta(minutes=minutes)
        Escalation.objects.update_or_create(run=run, defaults={"since": now, "told": [], "next_at": again})


def needs_a_person(run: Run) -> bool:
    """Return whether the run goes on only when a person does something, and it was not a person who paused it."""
    if run.pause_reason == PauseReason.ACCOUNT_FLAGGED:
        return run.canceled_at is None
    return run.waits_for_a_person and run.pause_reason != PauseReason.OPERATOR


def minutes_of(owner: User) -> int:
    """Return how long a run of the owner may wait; 0 where nobody is told again."""
    chosen = preferences_of(owner).escalate_minutes
    return int(settings.ESCALATE_AFTER_MINUTES) if chosen is None else chosen


def escalate(now: datetime) -> int:
    """Tell of the runs that wait too long; return how many people were told."""
    due = Escalation.objects.filter(next_at__lte=now).order_by("next_at", "pk")
    return sum(_next(pk, now=now) for pk in list(due.values_list("pk", flat=True)[:AT_ONCE]))


@transaction.atomic
def _next(escalation_id: int, *, now: datetime) -> bool:
    """Tell the next person of one run; return whether there was one to tell."""
    locked = Escalation.objects.select_for_update(skip_locked=True, of=("self",)).select_related("run__owner")
    found = locked.defer("run__parts").filter(pk=escalation_id, next_at__lte=now).first()
    if found is None:
        return False
    minutes = minutes_of(found.run.owner)
    if found.run.status in SETTLED_RUN or not minutes:
        found.delete()
        return False
    found.next_at = now + timedelta(minutes=minutes)
    told = _told_next(found, now=now) if needs_a_person(found.run) else _looked_at(found, now=now)
    found.save(update_fields=["told", "since", "next_at"])
    return told


def _told_next(found: Escalation, *, now: datetime) -> bool:
    person = next_person(found.run, found.told)
    if person is None:
        found.next_at = None
        return False
    _tell(found, person, now=now)
    found.told.append(person.pk)
    return True


def _looked_at(found: Escalation, *, now: datetime) -> bool:
    """Begin anew with a run that goes on: if it waits at the next look, its owner is the first to be told."""
    found.told, found.since = [], now
    return False


def next_person(run: Run, told: list[int]) -> User | None:
    """Return who is told next: the owner, then team members in the owner's order, of those who can decide now."""
    if run.owner_id not in told and run.owner.is_active:
        return run.owner
    order = preferences_of(run.owner).next_people
    mates = TeamMate.objects.filter(owner=run.owner_id, mate__in=order, mate__is_active=True)
    people = {each.mate_id: each.mate for each in mates.select_related("mate")}
    left = (people[pk] for pk in order if pk in people and pk not in told)
    return next((person for person in left if may_touch(run, person, Role.SEND)), None)


def _tell(found: Escalation, person: User, *, now: datetime) -> None:
    run, waited = found.run, int((now - found.since).total_seconds() // 60)
    whose = "" if person == run.owner else f" It is {run.owner}'s."
    tell(
        person.pk,
        Notification.Kind.WAITING,
        key=f"run:{run.pk}:waiting:{found.since:%Y%m%d%H%M%S}",
        title=f"{run.name[:100]} waits for you",
        body=f"Nobody has decided for {waited} minutes.{whose} {run.summary}"[:480],
        url=f"/reminders/{run.reminder_id}/",
        run_id=run.pk,
    )
