"""The problems that keep a reminder from being scheduled, each with the step of the wizard that fixes it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from django.db.models import Case, Exists, F, OuterRef, Q, QuerySet, TextField, Value, When
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Coalesce
from django.utils import timezone

from accounts.models import Account, Recipient
from activity.components.times import dated
from delivery.audience import Audience
from delivery.limits.lookup import why_never_from
from delivery.parts import variables
from delivery.window import BadWindowError, Missed, Window, days_of, is_open, on_fire, zone_of
from delivery.wordings import cut
from reminders.drafts import WITH_SUBJECT
from reminders.message import length_trouble, typed_of, wording_trouble
from reminders.models import Part, Reminder
from reminders.moments import BadCronError, Once, Repeating, Timetable, check_cron, upcoming

LOOK_AHEAD = 5


class Step(StrEnum):
    """A step of the wizard."""

    MESSAGE = "message"
    ACCOUNTS = "accounts"
    RECIPIENTS = "recipients"
    WHEN = "when"
    REVIEW = "review"


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """A problem and what to do about it, for the operator."""

    step: Step
    sentence: str

    def __str__(self) -> str:
        return f"{self.step.capitalize()}: {self.sentence}"


class NotReadyError(ValueError):
    """The reminder cannot be scheduled as it is. `problems` lists everything that is wrong."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = list(problems)
        super().__init__(" ".join(str(problem) for problem in problems))


def problems(
    reminder: Reminder,
    *,
    now: datetime | None = None,
    reached: Audience | None = None,
    parts: Sequence[Part] | None = None,
) -> list[Problem]:
    """Return all problems of the saved reminder, in the order of the steps; none if it is ready.

    A page that has counted the audience passes it as `reached`; scheduling reads the rows themselves. A page that has
    read the `parts` with their files passes them too.
    """
    parts = list(reminder.parts.select_related("media")) if parts is None else parts
    accounts = list(Account.objects.filter(reminder_accounts__reminder=reminder).defer("credentials"))
    return [
        *_about_message(reminder, parts, accounts),
        *_about_accounts(reminder, accounts),
        *_about_recipients(reminder, accounts, parts, reached),
        *_about_time(reminder, now or timezone.now()),
        *_about_archive(reminder),
    ]


def timetable_of(reminder: Reminder) -> Timetable | None:
    """Return when it is due, or None for one that is fired by hand or a one-off without a time."""
    match reminder.schedule:
        case Reminder.Schedule.CRON:
            return Repeating(cron=reminder.cron, zone=reminder.zone)
        case Reminder.Schedule.ONCE if reminder.fire_at is not None:
            return Once(at=reminder.fire_at)
        case _:
            return None


def window_of(reminder: Reminder) -> Window:
    return Window(
        start_hour=reminder.window_start_hour,
        end_hour=reminder.window_end_hour,
        days=days_of(reminder.send_days),
        zone=reminder.zone,
    )


def why_not_now(reminder: Reminder, now: datetime, *, hold: timedelta = timedelta()) -> str:
    """Return why nothing would be sent now, as today's delivery hours are over (W4), or an empty string.

    With `hold`, hours that end before that time has passed are over too: the rest would leave tomorrow.
    """
    window = window_of(reminder)
    ends = is_open(window, now) and not is_open(window, now + hold)
    if not ends and not isinstance(on_fire(window, now), Missed):
        return ""
    if ends:
        return (
            f"Today's delivery hours end in a few seconds, at {window.end_hour:02}:00 {window.zone}. "
            "Choose later hours, or try again tomorrow."
        )
    return (
        f"Today's delivery hours ended at {window.end_hour:02}:00 {window.zone}, so nothing would be sent now. "
        "Choose later hours, or try again tomorrow."
    )


def _about_message(
    reminder: Reminder, parts: Sequence[Part], accounts: Sequence[Account]
) -> Iterator[Problem]:
    first = sum(part.role == Part.Role.FIRST for part in parts)
    typed = list(map(typed_of, parts))
    if trouble := wording_trouble(typed) or length_trouble(typed, reminder):
        yield Problem(step=Step.MESSAGE, sentence=trouble)
    if not first:
        yield Problem(step=Step.MESSAGE, sentence="There is no message yet. Write one.")
    elif never := why_never_from(accounts, reminder.action, first):
        yield Problem(step=Step.MESSAGE, sentence=never)
    if reminder.action in WITH_SUBJECT and not reminder.subject.strip():
        yield Problem(
            step=Step.MESSAGE, sentence=f"{reminder.get_action_display()} needs a subject. Write one."
        )


def _about_accounts(reminder: Reminder, accounts: Sequence[Account]) -> Iterator[Problem]:
    if not accounts:
        yield Problem(step=Step.ACCOUNTS, sentence="There is no account to send from. Choose one.")
    for account in accounts:
        if account.archived_at is not None:
            yield Problem(
                step=Step.ACCOUNTS,
                sentence=f"{account} is archived. Choose another account, or unarchive it.",
            )
        elif account.channel != reminder.channel:
            yield Problem(
                step=Step.ACCOUNTS,
                sentence=f"{account} sends by {account.get_channel_display()}, but this reminder is sent "
                f"by {reminder.get_channel_display()}. Choose another account.",
            )


def _any(reminder: Reminder, those: "QuerySet[Recipient]") -> bool:
    """Return whether any of `those` is named or tagged, without reading the rest: there may be a million."""
    named = reminder.recipients.through.objects.filter(reminder=reminder)
    tags = reminder.tags.through.objects.filter(reminder=reminder).values("tag")
    tagged = Recipient.tags.through.objects.filter(tag__in=tags)
    return any(
        rows.filter(Exists(those.filter(pk=OuterRef("recipient")))).exists() for rows in (named, tagged)
    )


def _about_recipients(
    reminder: Reminder, accounts: Sequence[Account], parts: Sequence[Part], reached: Audience | None
) -> Iterator[Problem]:
    if reached is not None and reached.complete:
        return
    within_reach = Q(channel=reminder.channel) & (Q(account=None) | Q(account__in=accounts))
    reachable = Recipient.objects.reachable().filter(within_reach)
    needed = _needed(reminder, parts)
    if _any(reminder, _complete(reachable, needed)):
        return
    if not _any(reminder, Recipient.objects.all()):
        yield Problem(step=Step.RECIPIENTS, sentence="There are no recipients. Choose some.")
    elif not _any(reminder, reachable):
        yield Problem(
            step=Step.RECIPIENTS,
            sentence="None of the recipients can be reached: they opted out, are blocked, archived, encrypted, "
            "on another channel, or reached only by another account. Choose others.",
        )
    else:
        nobodys = [name for name in needed if not _any(reminder, _complete(reachable, [name]))]
        names = ", ".join(f"{{{{ {name} }}}}" for name in nobodys or needed)
        whose = "No recipient has a value for" if nobodys else "Every recipient lacks a value for one of"
        yield Problem(
            step=Step.RECIPIENTS,
            sentence=f"{whose} {names}, so nobody would get it. Fill it in for them, or change the text.",
        )


def why_nobody(reminder: Reminder, reached: Audience) -> str:
    """Return why a reminder whose audience was counted would reach nobody, or an empty string."""
    accounts = list(Account.objects.filter(reminder_accounts__reminder=reminder).defer("credentials"))
    parts = list(reminder.parts.select_related("media"))
    return " ".join(problem.sentence for problem in _about_recipients(reminder, accounts, parts, reached))


def _complete(reachable: "QuerySet[Recipient]", needed: Sequence[str]) -> "QuerySet[Recipient]":
    """Return the recipients who have every value that the message needs."""
    rows = reachable
    for number, name in enumerate(needed):
        rows = rows.annotate(**{f"value_{number}": _value(name)}).exclude(**{f"value_{number}": ""})
    return rows


def _needed(reminder: Reminder, parts: Sequence[Part]) -> list[str]:
    """Return the variables without which nobody gets the message, whatever wordings and choices are drawn."""
    first = [typed_of(part) for part in parts if part.role == Part.Role.FIRST]
    always = [set.intersection(*map(_always, part.wordings)) for part in first if part.wordings]
    return sorted(set().union(variables(reminder.subject), *always))


def _always(wording: str) -> set[str]:
    """Return the variables of a wording that are in none of its choices."""
    return set().union(*(variables(piece) for piece in cut(wording) if isinstance(piece, str)))


def _value(name: str) -> Coalesce:
    """Return the value of a variable as the engine fills it in: a field goes before the column of the same name."""
    column = F(name) if name in {"name", "address"} else Value("")
    own = When(fields__has_key=name, then=KeyTextTransform(name, "fields"))
    return Coalesce(Case(own, default=column, output_field=TextField()), Value(""), output_field=TextField())


def _about_time(reminder: Reminder, now: datetime) -> Iterator[Problem]:
    try:
        window = window_of(reminder)
        if reminder.schedule == Reminder.Schedule.CRON:
            check_cron(reminder.cron)
    except (BadWindowError, BadCronError) as error:
        yield Problem(step=Step.WHEN, sentence=str(error))
        return
    timetable = timetable_of(reminder)
    if timetable is None:
        if reminder.schedule == Reminder.Schedule.ONCE:
            yield Problem(step=Step.WHEN, sentence="There is no time yet. Choose when it is sent.")
        return
    yield from _about_moments(reminder, timetable, window, now)


def _about_moments(
    reminder: Reminder, timetable: Timetable, window: Window, now: datetime
) -> Iterator[Problem]:
    ahead, zone = upcoming(timetable, after=now, count=LOOK_AHEAD), zone_of(reminder.zone)
    if not ahead and not _is_due(reminder, timetable):
        over = dated(timetable.at, zone, now=now) if isinstance(timetable, Once) else "The last time"
        yield Problem(step=Step.WHEN, sentence=f"{over} is in the past. Choose a later time.")
    elif ahead and all(isinstance(on_fire(window, moment), Missed) for moment in ahead):
        yield Problem(
            step=Step.WHEN,
            sentence=f"{dated(ahead[0], zone, now=now)} is after the delivery hours "
            f"({window.start_hour}:00 to {window.end_hour}:00), so nothing would be sent. "
            "Choose an earlier time, or later hours.",
        )


def _is_due(reminder: Reminder, timetable: Timetable) -> bool:
    """Return whether its moment has come and is about to be fired: then a time in the past is not a mistake."""
    return isinstance(timetable, Once) and reminder.next_fire_at == timetable.at


def _about_archive(reminder: Reminder) -> Iterator[Problem]:
    if reminder.archived_at is not None:
        yield Problem(step=Step.REVIEW, sentence="The reminder is archived. Unarchive it first.")
