"""Reads and saves when a person may be disturbed."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, time
from zoneinfo import ZoneInfo

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from accounts.models import TeamMate, User
from audit.record import differing, record, values_of
from notices.models import Follow, Notice, NoticeAddress, Preferences
from notices.moments import Quiet, Rules, due_at

SEEN = ("quiet_from", "quiet_until", "daily_at", "escalate_minutes", "next_people")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """The choices that a person made on the page."""

    quiet_from: time | None
    quiet_until: time | None
    daily_at: time
    escalate_minutes: int | None
    next_people: Sequence[int]
    follows: Sequence[int]


def preferences_of(person: User) -> Preferences:
    """Return what the person chose, or the defaults."""
    return Preferences.objects.filter(person=person).first() or Preferences(person=person)


def zone_of(person: User) -> ZoneInfo:
    return ZoneInfo(person.zone or settings.TIME_ZONE)


def rules_of(address: NoticeAddress) -> Rules:
    """Return when the address may be used."""
    chosen = preferences_of(address.person)
    quiet = None
    if chosen.quiet_from is not None and chosen.quiet_until is not None:
        quiet = Quiet(start=chosen.quiet_from, end=chosen.quiet_until)
    return Rules(zone=zone_of(address.person), rhythm=address.rhythm, daily_at=chosen.daily_at, quiet=quiet)


@transaction.atomic
def save(person: User, wishes: Wishes) -> Preferences:
    """Save what the person chose; what waits for the old hours is planned anew."""
    # The addresses first: whoever asks for a code locks in this order too.
    addresses = list(
        NoticeAddress.objects.filter(person=person).select_for_update(no_key=True).order_by("pk")
    )
    before = values_of(preferences_of(person), SEEN)
    mates = set(TeamMate.objects.filter(owner=person).values_list("mate", flat=True))
    made, _ = Preferences.objects.update_or_create(
        person=person,
        defaults={
            "quiet_from": wishes.quiet_from,
            "quiet_until": wishes.quiet_until,
            "daily_at": wishes.daily_at,
            "escalate_minutes": wishes.escalate_minutes,
            "next_people": [pk for pk in dict.fromkeys(wishes.next_people) if pk in mates],
        },
    )
    _follow(person, wishes.follows)
    old, new = differing(before, values_of(made, SEEN))
    record("notices.preferences_changed", made, by=person, before=old, after=new)
    for address in addresses:
        plan_anew(address, now=timezone.now())
    return made


def _follow(person: User, owners: Sequence[int]) -> None:
    """Follow exactly these owners, of those whose team the person is in."""
    allowed = TeamMate.objects.filter(mate=person, owner__in=owners).values_list("owner", flat=True)
    Follow.objects.filter(person=person).exclude(owner__in=allowed).delete()
    Follow.objects.bulk_create([Follow(person=person, owner_id=pk) for pk in allowed], ignore_conflicts=True)


def plan_anew(address: NoticeAddress, *, now: datetime) -> None:
    """Plan what waits for a locked address by the rules of now."""
    due = due_at(now, rules_of(address), last_sent_at=address.last_sent_at)
    waiting = Notice.objects.filter(address=address, state=Notice.State.PENDING, message=None)
    waiting.filter(kind__in=address.kinds).update(due_at=due)
