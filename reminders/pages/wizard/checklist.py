"""The checklist of a reminder: each point with its facts, its problems, and the page that fixes them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from django.conf import settings
from django.urls import reverse

from accounts.models import Account
from accounts.models.account import Channel
from delivery.audience import Audience
from delivery.health import judge, words
from delivery.window import day_names
from reminders.conversations.second_message import hours
from reminders.headcount import Texts, headcount, lacks, texts_of
from reminders.likeness.warning import same_text_warning
from reminders.models import Part, Reminder
from reminders.readiness import Problem, Step, problems, timetable_of
from reminders.schedule_words import too_often, words_of

PAGES = {
    Step.MESSAGE: "message",
    Step.ACCOUNTS: "recipients",
    Step.RECIPIENTS: "recipients",
    Step.WHEN: "when",
    Step.REVIEW: "page",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One line of the checklist. Problems must be fixed first; warnings may be ignored."""

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
    """All points about a reminder before it is scheduled or sent."""

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
    parts = list(reminder.parts.select_related("media").order_by("role", "position"))
    wrong = problems(reminder, now=now, reached=reached, parts=parts)
    warnings = [*_about_variables(reached, texts), same_text_warning(reminder, parts, accounts, reached)]
    points = [
        _message(reminder, parts, texts, wrong, warnings=list(filter(None, warnings))),
        _accounts(reminder, accounts, wrong, now=now),
        _recipients(reminder, reached, wrong),
        _when(reminder, wrong, now),
        _window(reminder),
    ]
    return Checklist(points=points, audience=reached, accounts=accounts)


def button(reminder: Reminder, reached: Audience, firing: datetime | None, *, now: datetime) -> str:
    """Return the label of the button: Schedule for 1,000 groups, tomorrow 09:00 Asia/Kuala_Lumpur."""
    if firing is None:
        return "Save, send later"
    first = "first " if reminder.schedule == Reminder.Schedule.CRON else ""
    at = f"{first}{day_and_hour(firing, reminder.zone, now)} {reminder.zone}"
    return f"Schedule for {reached.words_of_complete}, {at}"


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
        facts.append("Each part is sent as a separate message and counts toward the limits.")
    if second:
        more = _counted(len(second), "part")
        facts.append(f"People who reply within {hours(reminder):g} hours get a second message of {more}.")
    if steps := texts.follow_ups:
        facts.append(f"People who do not reply get up to {_counted(len(steps), 'follow-up')}.")
    return Point(
        title="Message",
        facts=facts,
        url=_url(reminder, Step.MESSAGE),
        problems=_sentences(wrong, Step.MESSAGE),
        warnings=warnings,
    )


def _about_variables(reached: Audience, texts: Texts) -> list[str]:
    """Return a warning for each missing variable, and one if so many would fail that the run stops."""
    said = [str(lack) for lack in lacks(reached, texts)]
    if reached.short > settings.ERROR_RATE_STOP * reached.reached:
        said.append("Too many would fail; the run would stop by itself.")
    return said


def _accounts(
    reminder: Reminder, accounts: Sequence[Account], wrong: Iterable[Problem], *, now: datetime
) -> Point:
    stopped = [account for account in accounts if account.status != Account.Status.ACTIVE]
    names = ", ".join(str(account) for account in accounts[:5])
    more = f" and {len(accounts) - 5} more" if len(accounts) > 5 else ""
    facts = [f"{names}{more}, by {Channel(reminder.channel).label}"] if accounts else []
    if len(accounts) > 1:
        facts.append("People are shared between them. Groups always use their own account.")
    return Point(
        title="Account" if len(accounts) == 1 else "Accounts",
        facts=facts,
        url=_url(reminder, Step.ACCOUNTS),
        problems=_sentences(wrong, Step.ACCOUNTS),
        warnings=[
            *(
                f"{account} is {account.get_status_display().lower()}: the run pauses until the account can send."
                for account in stopped
            ),
            *filter(
                None, (words.warning(account, health) for account, health in judge.judge(accounts, now=now))
            ),
        ],
    )


def _recipients(reminder: Reminder, reached: Audience, wrong: Iterable[Problem]) -> Point:
    get_it = f"{reached.words_of_complete} {'gets' if reached.complete == 1 else 'get'} it"
    return Point(
        title="Recipients",
        facts=[get_it, *filter(None, [reached.words_of_excluded, reached.words_of_kept])],
        url=_url(reminder, Step.RECIPIENTS),
        problems=_sentences(wrong, Step.RECIPIENTS),
    )


def _when(reminder: Reminder, wrong: Iterable[Problem], now: datetime) -> Point:
    found = [*_sentences(wrong, Step.WHEN), *_sentences(wrong, Step.REVIEW)]
    timetable = None if found else timetable_of(reminder)
    return Point(
        title="When",
        facts=[] if found else [words_of(reminder)],
        url=_url(reminder, Step.WHEN),
        problems=found,
        warnings=too_often(timetable, now) if timetable else [],
    )


def _window(reminder: Reminder) -> Point:
    hours = f"{reminder.window_start_hour:02}:00 to {reminder.window_end_hour:02}:00 {reminder.zone}"
    close = {
        Reminder.OnClose.WAIT: "If the run is not finished by then, it pauses and asks you.",
        Reminder.OnClose.RESUME: "If the run is not finished by then, it continues when the hours start again.",
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
