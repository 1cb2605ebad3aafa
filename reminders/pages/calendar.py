"""The calendar: a day or a week in the person's zone, and the feed for other calendars."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_GET, require_POST

from accounts.access import user_of
from accounts.models import User
from accounts.roles import visible
from delivery.models import Run
from reminders.calendar import feed
from reminders.calendar.entries import Entry, entries
from reminders.calendar.lengths import AT_ONCE, Lengths
from reminders.models import Reminder

WIDTH = 1440  # of the strip of a day, in minutes of a day without a clock change
NARROWEST = 6.0
FIRST, LAST = date(2000, 1, 8), date(9999, 12, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """An entry on one day: its place on the strip of that day."""

    entry: Entry
    x: float
    width: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Day:
    """One day with its entries."""

    date: date
    bars: Sequence[Bar]
    today: bool
    now_x: float | None  # where this moment is on the strip


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """The days that the address asks for."""

    today: date
    shown: date
    weekly: bool

    @property
    def first(self) -> date:
        return self.shown - timedelta(days=self.shown.weekday()) if self.weekly else self.shown

    @property
    def days(self) -> int:
        return 7 if self.weekly else 1

    @property
    def starts(self) -> datetime:
        return _midnight(self.first)

    @property
    def ends(self) -> datetime:
        return _midnight(self.first + timedelta(days=self.days))


@login_required
@require_GET
def calendar(request: HttpRequest) -> HttpResponse:
    person, now = user_of(request), timezone.now()
    span = _span(request, now)
    found = _entries(person, since=span.starts, until=span.ends, now=now, lengths=Lengths(new=AT_ONCE))
    days = [span.first + timedelta(days=number) for number in range(span.days)]
    context = {
        "weekly": span.weekly,
        "days": [_drawn(each, found, span.today, now) for each in days],
        "first": span.first,
        "last": days[-1],
        "shown": span.shown,
        "today": span.today,
        "before": span.first - timedelta(days=span.days),
        "after": span.first + timedelta(days=span.days),
        "empty": not found,
        "clashing": sum(bool(entry.clashes) for entry in found),
        "unknown": sum(not entry.known for entry in found),
        "zone": timezone.get_current_timezone_name(),
        "width": WIDTH,
        "feed": request.build_absolute_uri(reverse("calendar:feed", args=[feed.token_of(person)])),
    }
    return render(request, "calendar/calendar.html", context)


@login_required
@require_GET
def foresee(request: HttpRequest) -> JsonResponse:
    """Forecast what the page shows without a length, and return whether it is to be drawn again."""
    person, now = user_of(request), timezone.now()
    span = _span(request, now)
    found = _entries(person, since=span.starts, until=span.ends, now=now, lengths=Lengths())
    return JsonResponse({"changed": bool(found)})


@login_required
@require_POST
def renew_feed(request: HttpRequest) -> HttpResponse:
    feed.renew(user_of(request))
    messages.success(request, "New address made. Calendars with the old one get nothing more.")
    return redirect("calendar:calendar")


@require_GET
def ics(request: HttpRequest, token: str) -> HttpResponse:
    """Return the feed of the person whose address this is. It needs no login: calendar programs have none."""
    person, now = feed.person_of(token), timezone.now()
    if person is None:
        raise Http404("There is no such calendar.")
    found = _entries(person, since=now - feed.BEHIND, until=now + feed.AHEAD, now=now, lengths=Lengths())
    site = request.build_absolute_uri("/").rstrip("/")
    answer = HttpResponse(
        feed.written(found, site=site, now=now), content_type="text/calendar; charset=utf-8"
    )
    answer["Cache-Control"] = "private, max-age=300"
    return answer


def _span(request: HttpRequest, now: datetime) -> Span:
    today = timezone.localtime(now).date()
    weekly = request.GET.get("view", "week") != "day"
    return Span(today=today, shown=_day(request.GET.get("day", ""), today), weekly=weekly)


def _entries(
    person: User, *, since: datetime, until: datetime, now: datetime, lengths: Lengths
) -> list[Entry]:
    reminders, runs = visible(Reminder.objects.all(), person), visible(Run.objects.all(), person)
    return entries(reminders, runs, since=since, until=until, now=now, lengths=lengths)


def _drawn(day: date, found: Sequence[Entry], today: date, now: datetime) -> Day:
    starts, ends = _midnight(day), _midnight(day + timedelta(days=1))
    here = [entry for entry in found if entry.starts_at < ends and entry.ends_at > starts]
    scale = WIDTH / (ends - starts).total_seconds()
    return Day(
        date=day,
        bars=[_bar(entry, starts, ends, scale) for entry in here],
        today=day == today,
        now_x=round((now - starts).total_seconds() * scale, 1) if day == today else None,
    )


def _bar(entry: Entry, starts: datetime, ends: datetime, scale: float) -> Bar:
    x = (max(entry.starts_at, starts) - starts).total_seconds() * scale
    width = (min(entry.ends_at, ends) - max(entry.starts_at, starts)).total_seconds() * scale
    width = max(width, NARROWEST)
    return Bar(entry=entry, x=round(min(x, WIDTH - width), 1), width=round(width, 1))


def _midnight(day: date) -> datetime:
    return timezone.make_aware(datetime.combine(day, time()))


def _day(typed: str, today: date) -> date:
    """Return the day that the address names; today for any other text."""
    try:
        return min(max(date.fromisoformat(typed), FIRST), LAST)
    except ValueError:
        return today
