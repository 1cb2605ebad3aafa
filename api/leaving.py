"""When messages leave, and why not sooner: for runs, reminders and accounts, in the words of the pages."""

from collections.abc import Sequence
from datetime import datetime
from zoneinfo import ZoneInfo

from accounts.models import Account
from activity.components.times import dated
from api.schemas.base import Leaving
from delivery.models import Run
from delivery.progress import Sender, senders_of
from delivery.sentences.account_sentence import AccountNow, Mood, Why
from delivery.states import SETTLED_RUN, AccountStatus, RunStatus
from delivery.window import opens_at
from reminders.forecast import forecast_run
from reminders.models import Reminder
from reminders.readiness import window_of
from reminders.schedule_words import words_of

BEHIND, CANCELED, WINDOW = "other_run", "canceled", "window"


def of_runs(runs: Sequence[Run], *, now: datetime) -> dict[int, Leaving]:
    """Return when each run goes on, by its id, from what is stored; the accounts of all runs are read together."""
    senders = senders_of(runs)
    return {run.pk: _of_run(run, senders[run.pk], now) for run in runs}


def of_run(run: Run, *, now: datetime, senders: Sequence[Sender] | None = None) -> Leaving:
    """Return the same for one run, with the time of its next message from its forecast.

    `senders` are its accounts, where they have been read.
    """
    found = of_runs([run], now=now)[run.pk] if senders is None else _of_run(run, senders, now)
    if found.leaves_at is None:
        return found
    foreseen = forecast_run(run, now=now)
    starts_at = foreseen.timeline.starts_at if foreseen else None
    return found.model_copy(update={"leaves_at": max(found.leaves_at, starts_at or found.leaves_at)})


def of_reminder(reminder: Reminder, *, now: datetime) -> Leaving:
    """Return when the reminder's next run begins to leave."""
    match reminder.status:
        case Reminder.Status.SCHEDULED if reminder.next_fire_at is not None:
            window = window_of(reminder)
            leaves = opens_at(window, max(now, reminder.next_fire_at))
            sentence = f"{words_of(reminder)}. Next: {dated(reminder.next_fire_at, ZoneInfo(reminder.zone))}."
            return Leaving(leaves_at=leaves, waiting_for="schedule", sentence=sentence)
        case Reminder.Status.SCHEDULED:
            return Leaving(
                leaves_at=None, waiting_for="a_person", sentence="It is sent when somebody fires it."
            )
        case Reminder.Status.DRAFT:
            return Leaving(leaves_at=None, waiting_for="draft", sentence="It is a draft. Schedule it first.")
        case Reminder.Status.OFF:
            return Leaving(
                leaves_at=None, waiting_for="switched_off", sentence="It is switched off. Schedule it again."
            )
        case _:
            return Leaving(leaves_at=None, waiting_for="done", sentence="It was sent and is not repeated.")


def waiting_for(account: AccountNow) -> str:
    """Return the reason why an account waits or is stopped as one stable word; empty while it sends or is ready."""
    if account.archived:
        return "archived"
    if account.status is not AccountStatus.ACTIVE:
        return str(account.status.value)
    if account.trouble_kind:
        return account.trouble_kind
    return account.waiting_for if account.running else ""


def _of_run(run: Run, senders: Sequence[Sender], now: datetime) -> Leaving:
    if run.status in SETTLED_RUN:
        return Leaving(leaves_at=None, waiting_for="", sentence=run.summary)
    if run.canceled_at is not None:
        return Leaving(leaves_at=None, waiting_for=CANCELED, sentence=run.summary)
    if run.status == RunStatus.RUNNING:
        return _of_senders(run, senders, now)
    opening = run.opens_at
    reason = run.pause_reason or (WINDOW if opening else BEHIND)
    sentence = run.summary
    if opening is not None and not sentence:
        sentence = f"Waits for its delivery hours, from {dated(opening, ZoneInfo(run.zone))} on."
    return Leaving(leaves_at=opening and max(now, opening), waiting_for=reason, sentence=sentence)


def _of_senders(run: Run, senders: Sequence[Sender], now: datetime) -> Leaving:
    """Return the state of the account that sends the next message: the first that sends, else the first that waits."""
    if not senders:
        return Leaving(leaves_at=now, waiting_for="", sentence="")
    zone = ZoneInfo(run.zone)
    sending = [sender for sender in senders if sender.why.mood is Mood.SENDING]
    chosen = (sending or sorted(senders, key=lambda sender: _again(sender.account, sender.why, now)))[0]
    return Leaving(
        leaves_at=_again(chosen.account, chosen.why, now),
        waiting_for="" if chosen in sending else _reason(chosen.account),
        sentence=chosen.why.text(now, zone),
    )


def _again(account: Account, why: Why, now: datetime) -> datetime:
    """Return when an account may send again, by what is stored."""
    at = why.at if why.at is not None and not why.counts_up else account.waiting_until
    return max(now, at or now)


def _reason(account: Account) -> str:
    return account.trouble_kind or account.waiting_for
