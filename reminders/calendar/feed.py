"""The feed for other calendars, at an address that only its person knows.

The address is made of the installation's key, the person and a number: nothing secret is stored, and a new number
ends all addresses before it.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from django.db import transaction
from django.db.models import F
from django.utils.crypto import constant_time_compare, salted_hmac

from accounts.models import User
from audit.record import record
from reminders.calendar.entries import Entry

if TYPE_CHECKING:
    from icalendar import Event

AHEAD = timedelta(days=60)
BEHIND = timedelta(days=14)
REFRESH = timedelta(hours=1)
SALT = "paceline.calendar.feed"


def token_of(person: User) -> str:
    """Return the secret part of the person's address."""
    said = f"{person.pk}:{person.calendar_number}"
    return f"{person.pk}-{salted_hmac(SALT, said, algorithm='sha256').hexdigest()[:40]}"


def person_of(token: str) -> User | None:
    """Return the person whose address this is, or None."""
    number = token.partition("-")[0]
    if not (number.isascii() and number.isdigit() and len(number) < 19):
        return None
    person = User.objects.filter(pk=int(number), is_active=True).first()
    return person if person is not None and constant_time_compare(token, token_of(person)) else None


def renew(person: User) -> None:
    """End the person's address; the next one is another."""
    with transaction.atomic():
        User.objects.filter(pk=person.pk).update(calendar_number=F("calendar_number") + 1)
        record("calendar.renewed", person, by=person)
    person.refresh_from_db(fields=["calendar_number"])


def written(entries: Iterable[Entry], *, site: str, now: datetime) -> bytes:
    """Return the entries as a calendar file. `site` is the address of this installation, without a slash at the end."""
    from icalendar import Calendar  # noqa: PLC0415 - large, and rarely needed

    calendar = Calendar()
    calendar.add("prodid", "-//Paceline//Calendar//EN")
    calendar.add("version", "2.0")
    calendar.add("x-wr-calname", "Paceline")
    calendar.add("refresh-interval", REFRESH, parameters={"value": "DURATION"})
    for entry in entries:
        calendar.add_component(_event(entry, site, now))
    return bytes(calendar.to_ical())


def _event(entry: Entry, site: str, now: datetime) -> "Event":
    from icalendar import Event  # noqa: PLC0415

    event = Event()
    host = site.partition("//")[2] or "paceline"
    event.add("uid", f"{entry.uid}@{host}")
    event.add("dtstamp", now)
    event.add("dtstart", entry.starts_at)
    event.add("dtend", entry.ends_at)
    event.add("summary", entry.title)
    event.add("description", "\n".join([*_about(entry), *entry.clashes]))
    event.add("url", f"{site}{entry.url}")
    return event


def _about(entry: Entry) -> list[str]:
    said = [f"From {', '.join(sorted(entry.accounts.values()))}."] if entry.accounts else []
    if entry.targets is not None:
        said.append(f"To {entry.targets:,} recipient{'' if entry.targets == 1 else 's'}.")
    if entry.status:
        said.append(f"Status: {entry.status}.")
    elif not entry.fits:
        said.append("Likely to pause before it is finished.")
    return said
