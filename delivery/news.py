"""What owners are told about runs and accounts (SPEC U5)."""

from collections.abc import Iterable

from accounts.models import Account
from activity.models import Notification
from activity.notify import tell
from delivery import summary
from delivery.models import Run
from delivery.states import PauseReason, RunStatus

Kind = Notification.Kind

_TOLD = {
    RunStatus.PAUSED: (Kind.PAUSED, "Reminder paused"),
    RunStatus.PARTIAL: (Kind.PARTIAL, "Reminder delivered in part"),
    RunStatus.SUCCESS: (Kind.SUCCESS, "Reminder delivered"),
    RunStatus.FAILED: (Kind.FAILED, "Reminder not delivered"),
}

BACK = "Runs that it had stopped go on."
LOCKED = "Its service stops messages to people it never wrote to. They wait; known chats go on."


def run_changed(run: Run) -> None:
    """Tell the owner that a run paused or ended; a skipped or canceled one is no news.

    Second messages and follow-ups come and go by themselves: only one that fails too often needs a person.
    """
    told = _TOLD.get(RunStatus(run.status))
    by_itself = run.kind != Run.Kind.REMINDER and run.pause_reason != PauseReason.ERROR_RATE
    if told is None or by_itself:
        return
    kind, title = told
    key = f"run:{run.pk}:{run.status}:{run.sent}:{run.failed}:{run.skipped}:{run.pending}"
    url = f"/reminders/{run.reminder_id}/"
    tell(run.owner_id, kind, key=key, title=title, body=_body(run), url=url, run_id=run.pk)


def moments_missed(runs: Iterable[Run]) -> None:
    """Tell the owners of due moments that were missed; `runs` are their records."""
    for run in runs:
        key, body = f"run:{run.pk}:missed", f"{run.name}: {run.summary}"
        url = f"/reminders/{run.reminder_id}/"
        tell(run.owner_id, Kind.MISSED, key=key, title="Reminder missed", body=body, url=url)


def account_stopped(account: Account, reason: str) -> None:
    key = (
        f"account:{account.pk}:{account.status_changed_at:%Y%m%d%H%M%S}" if account.status_changed_at else ""
    )
    title = f"{account} stopped sending"
    body = f"It is {account.get_status_display().lower()}: {reason.rstrip('.')}. Its runs are paused."
    tell(account.owner_id, Kind.ACCOUNT, key=key, title=title, body=body, url=f"/accounts/{account.pk}/")


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
    delivered, rest = summary.delivered(run), ", ".join(summary.rest(run))
    if run.status == RunStatus.PAUSED:
        why = " The daily cap is reached." if run.pause_reason == PauseReason.DAILY_CAP else ""
        return f"{delivered}.{why} Tap to resume or cancel."
    return f"{run.name}: {delivered}." + (f" {rest.capitalize()}." if rest else "")
