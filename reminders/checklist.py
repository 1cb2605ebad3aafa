"""What a reminder will do, point by point, with what is wrong at each and where to mend it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from django.conf import settings
from django.urls import reverse

from accounts.models import Account
from accounts.models.account import Channel
from delivery.audience import Audience
from delivery.send_days import day_names
from reminders.headcount import headcount
from reminders.lacking import Texts, lacks, texts_of
from reminders.models import Part, Reminder
from reminders.readiness import Problem, Step, problems
from reminders.second_message import hours
from reminders.timetable_words import words_of

PAGES = {
    Step.MESSAGE: "message",
    Step.ACCOUNTS: "recipients",
    Step.RECIPIENTS: "recipients",
    Step.WHEN: "when",
    Step.REVIEW: "page",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One line of the checklist. Problems must be mended first; warnings are for the operator to weigh."""

    title: str
    facts: Sequence[str]
    url: str
    problems: Sequence[str] = ()
    warnings: Sequence[str] = ()

    @property
    def tone(self) -> str:
        return "bad" if self.problems else "warn" if self.warnings else "good"


@dataclass(frozen=True, slots=True, kw_only=True)
class Checklist:
    """Everything about a reminder before it is let go."""

    points: Sequence[Point]
    audience: Audience
    accounts: Sequence[Account]

    @property
    def ready(self) -> bool:
        return not any(point.problems for point in self.points)


def checklist(reminder: Reminder, *, now: datetime) -> Checklist:
    rows = reminder.reminder_accounts.select_related("account").order_by("position", "id")
    accounts = [row.account for row in rows.defer("account__credentials")]
    ids = [account.pk for account in accounts]
    texts = texts_of(reminder)
    reached = headcount(reminder, ids, texts=texts)
    parts = list(reminder.parts.order_by("role", "position"))
    wrong = problems(reminder, now=now, reached=reached)
    points = [
        _message(reminder, parts, texts, wrong, warnings=_about_variables(reached, texts)),
        _accounts(reminder, accounts, wrong),
        _recipients(reminder, reached, wrong),
        _when(reminder, wrong),
        _window(reminder),
    ]
    return Checklist(points=points, audience=reached, accounts=accounts)


def button(reminder: Reminder, reached: Audience, firing: datetime | None, *, now: datetime) -> str:
    """What pressing it does: Schedule for 1,000 groups, tomorrow 09:00 Asia/Kuala_Lumpur."""
    who = reached.words_of_complete
    if firing is None:
        return f"Keep ready for {who}"
    first = "first " if reminder.schedule == Reminder.Schedule.CRON else ""
    return f"Schedule for {who}, {first}{day_and_hour(firing, reminder.zone, now)} {reminder.zone}"


def day_and_hour(moment: datetime, zone: str, now: datetime) -> str:
    local, today = moment.astimezone(ZoneInfo(zone)), now.astimezone(ZoneInfo(zone))
    if local.date() == today.date():
        day = "today"
    elif local.date() == today.date() + timedelta(days=1):
        day = "tomorrow"
    else:
        year = "" if local.year == today.year else f" {local.year}"
        day = f"{local:%A} {local.day} {local:%B}{year}"
    return f"{day} {local:%H:%M}"


def _message(
    reminder: Reminder,
    parts: Sequence[Part],
    texts: Texts,
    wrong: Iterable[Problem],
    *,
    warnings: Sequence[str],
) -> Point:
    first = [part for part in parts if part.role == Part.Role.FIRST]
    second = [part for part in parts if part.role == Part.Role.SECOND]
    files = sum(1 for part in first if part.media_id)
    facts = (
        [_counted(len(first), "part") + (f", {_counted(files, 'file')}" if files else "")] if first else []
    )
    if len(first) > 1:
        facts.append("Each part is a message of its own and counts against the limits.")
    if second:
        more = _counted(len(second), "part")
        facts.append(f"Whoever replies within {hours(reminder):g} hours gets {more} more.")
    if steps := texts.follow_ups:
        facts.append(f"Whoever does not reply gets {_counted(len(steps), 'follow-up')}.")
    return Point(
        title="Message",
        facts=facts,
        url=_url(reminder, Step.MESSAGE),
        problems=_sentences(wrong, Step.MESSAGE),
        warnings=warnings,
    )


def _about_variables(reached: Audience, texts: Texts) -> list[str]:
    """Each variable with how many lack it, and what comes of it where they are too many."""
    said = [str(lack) for lack in lacks(reached, texts)]
    if reached.short > settings.ERROR_RATE_STOP * reached.reached:
        said.append("So many would fail that the run pauses for its errors.")
    return said


def _accounts(reminder: Reminder, accounts: Sequence[Account], wrong: Iterable[Problem]) -> Point:
    stopped = [account for account in accounts if account.status != Account.Status.ACTIVE]
    names = ", ".join(str(account) for account in accounts[:5])
    more = f" and {len(accounts) - 5} more" if len(accounts) > 5 else ""
    facts = [f"{names}{more}, by {Channel(reminder.channel).label}"] if accounts else []
    if len(accounts) > 1:
        facts.append("Recipients are dealt to them in turn.")
    return Point(
        title="Account" if len(accounts) == 1 else "Accounts",
        facts=facts,
        url=_url(reminder, Step.ACCOUNTS),
        problems=_sentences(wrong, Step.ACCOUNTS),
        warnings=[
            f"{account} is {account.get_status_display().lower()}: the run pauses until it can send."
            for account in stopped
        ],
    )


def _recipients(reminder: Reminder, reached: Audience, wrong: Iterable[Problem]) -> Point:
    out = ", ".join(f"{count:,} {reason}" for reason, count in reached.refused.items())
    get_it = f"{reached.words_of_complete} {'gets' if reached.complete == 1 else 'get'} it"
    return Point(
        title="Recipients",
        facts=[get_it, *([f"{reached.excluded:,} excluded: {out}"] if out else [])],
        url=_url(reminder, Step.RECIPIENTS),
        problems=_sentences(wrong, Step.RECIPIENTS)
        or (
            []
            if reached.reached or not reached.excluded
            else ["All of those chosen are excluded. Choose others."]
        ),
    )


def _when(reminder: Reminder, wrong: Iterable[Problem]) -> Point:
    found = [*_sentences(wrong, Step.WHEN), *_sentences(wrong, Step.REVIEW)]
    facts = [] if found else [words_of(reminder)]
    return Point(title="When", facts=facts, url=_url(reminder, Step.WHEN), problems=found)


def _window(reminder: Reminder) -> Point:
    hours = f"{reminder.window_start_hour:02}:00 to {reminder.window_end_hour:02}:00 {reminder.zone}"
    close = {
        Reminder.OnClose.WAIT: "If it is not done by then, it pauses and asks you.",
        Reminder.OnClose.RESUME: "If it is not done by then, it goes on at the next opening.",
    }[Reminder.OnClose(reminder.on_close)]
    return Point(
        title="Delivery hours",
        facts=[f"{hours}, {day_names(reminder.send_days).lower()}", close],
        url=_url(reminder, Step.WHEN),
    )


def _sentences(wrong: Iterable[Problem], step: Step) -> list[str]:
    return [problem.sentence for problem in wrong if problem.step is step]


def _url(reminder: Reminder, step: Step) -> str:
    return reverse(f"reminders:{PAGES[step]}", args=[reminder.pk])


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
