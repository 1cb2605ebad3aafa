"""Notifies owners about runs and accounts (SPEC U5)."""

from collections.abc import Iterable
from zoneinfo import ZoneInfo

from django.utils import timezone

from accounts.models import Account
from activity.models import Notification
from activity.notify import DECIDE, tell
from delivery.models import Run
from delivery.sentences import run_summary
from delivery.states import PauseReason, RunStatus

Kind = Notification.Kind

_TOLD = {
    RunStatus.PAUSED: (Kind.PAUSED, "Reminder paused"),
    RunStatus.PARTIAL: (Kind.PARTIAL, "Reminder delivered in part"),
    RunStatus.SUCCESS: (Kind.SUCCESS, "Reminder delivered"),
    RunStatus.FAILED: (Kind.FAILED, "Reminder not delivered"),
}

_CANCELED = (Kind.CANCELED, "Reminder canceled")

BACK = "Its paused runs continue."
LOCKED = "The service does not let it write to new people for now. Messages to new people wait; known chats continue."


def run_changed(run: Run) -> None:
    """Notify the owner that a run paused or ended. One that was skipped, or canceled before anything was sent, is not.

    Second messages and follow-ups run by themselves: the owner is notified only when one fails too often.
    """
    told = _CANCELED if run.was_canceled and run.sent else _TOLD.get(RunStatus(run.status))
    by_itself = run.kind != Run.Kind.REMINDER and run.pause_reason != PauseReason.ERROR_RATE
    if told is None or by_itself:
        return
    kind, title = told
    key = f"run:{run.pk}:{run.status}:{run.sent}:{run.failed}:{run.skipped}:{run.pending}"
    url = f"/reminders/{run.reminder_id}/"
    tell(run.owner_id, kind, key=key, title=title, body=_body(run), url=url, run_id=run.pk)


def moments_missed(runs: Iterable[Run]) -> None:
    """Notify the owners of due moments that were missed; `runs` are their records."""
    for run in runs:
        key, body = f"run:{run.pk}:missed", f"{run.name}: {run.summary}"
        url = f"/reminders/{run.reminder_id}/"
        tell(run.owner_id, Kind.MISSED, key=key, title="Reminder missed", body=body, url=url)


def moments_skipped(runs: Iterable[Run]) -> None:
    """Notify the owners of due moments that were skipped for another run; `runs` are their records."""
    for run in runs:
        key, body = f"run:{run.pk}:skipped", f"{run.name}: {run.summary}"
        url = f"/reminders/{run.reminder_id}/"
        tell(run.owner_id, Kind.MISSED, key=key, title="Reminder skipped", body=body, url=url)


def messages_returned(run: Run) -> None:
    """Notify the owner, once per run, that many messages of a run that has ended came back."""
    key, url = f"run:{run.pk}:returned", f"/reminders/{run.reminder_id}/runs/{run.pk}/"
    body = f"{run.name}: {run_summary.returned(run)} Look at the reasons before you send again."
    title = "Messages came back"
    tell(run.owner_id, Kind.PARTIAL, key=key, title=title, body=body, url=url, run_id=run.pk)


def media_unreadable(run: Run, sentence: str) -> None:
    """Notify the owner, once per run, that a worker cannot read one of its files."""
    key, url = f"run:{run.pk}:media", f"/reminders/{run.reminder_id}/"
    tell(
        run.owner_id,
        Kind.ACCOUNT,
        key=key,
        title=f"{run.name} waits for a file"[:120],
        body=sentence,
        url=url,
    )


def account_stopped(account: Account, reason: str) -> None:
    key = (
        f"account:{account.pk}:{account.status_changed_at:%Y%m%d%H%M%S}" if account.status_changed_at else ""
    )
    title = f"{account} stopped sending"
    body = (
        f"The account is {account.get_status_display().lower()}: {reason.rstrip('.')}. Its runs are paused."
    )
    tell(account.owner_id, Kind.ACCOUNT, key=key, title=title, body=body, url=f"/accounts/{account.pk}/")


def account_in_trouble(account: Account) -> None:
    """Notify the owner once that an account's trouble lasts; the account is not offline and continues by itself."""
    if account.trouble_since is None or account.status != Account.Status.ACTIVE:
        return
    key = f"account:{account.pk}:trouble:{account.trouble_since:%Y%m%d%H%M%S}"
    since = account.trouble_since.astimezone(ZoneInfo(account.zone))
    body = f"Since {since:%H:%M}: {account.trouble.rstrip('.')}. Paceline keeps trying and continues when it works."
    title = f"{account} cannot send"
    tell(account.owner_id, Kind.ACCOUNT, key=key, title=title, body=body, url=f"/accounts/{account.pk}/")


def account_unhealthy(account: Account, what: str, reason: str) -> None:
    """Notify the owner that an account was slowed down or paused for its health, once per change."""
    key = f"account:{account.pk}:health:{account.health}:{timezone.now():%Y%m%d%H%M}"
    title = f"{account} {what}"[:120]
    tell(
        account.owner_id,
        Kind.ACCOUNT,
        key=key,
        title=title,
        body=reason[:500],
        url=f"/accounts/{account.pk}/",
    )


def account_back(account: Account) -> None:
    key = f"account:{account.pk}:back:{account.status_changed_at:%Y%m%d%H%M%S}"
    title = f"{account} is connected again"
    tell(account.owner_id, Kind.ACCOUNT, key=key, title=title, body=BACK, url=f"/accounts/{account.pk}/")


def first_contacts_locked(account: Account) -> None:
    key = f"account:{account.pk}:lock:{account.first_contacts_until:%Y%m%d%H%M}"
    title = f"{account} may not write to new people"
    tell(account.owner_id, Kind.ACCOUNT, key=key, title=title, body=LOCKED, url=f"/accounts/{account.pk}/")


def _body(run: Run) -> str:
    if run.total == 0:
        return f"{run.name}: {run.summary}"
    if run.was_canceled:
        return f"{run.name}: {run_summary.finished(run)}"
    delivered, rest = run_summary.delivered(run), ", ".join(run_summary.rest(run))
    if run.status == RunStatus.PAUSED:
        why = " The daily limit is reached." if run.pause_reason == PauseReason.DAILY_CAP else ""
        return f"{run.name}: {delivered}.{why}{DECIDE}"
    return f"{run.name}: {delivered}." + (f" {rest.capitalize()}." if rest else "")
