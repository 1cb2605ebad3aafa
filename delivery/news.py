"""What owners are told about runs and accounts (SPEC U5)."""

from accounts.models import Account
from activity.models import Notification
from activity.notify import tell
from delivery.models import Run
from delivery.states import RunStatus

Kind = Notification.Kind

_TOLD = {
    RunStatus.PAUSED: (Kind.PAUSED, "Reminder paused"),
    RunStatus.PARTIAL: (Kind.PARTIAL, "Reminder delivered in part"),
    RunStatus.SUCCESS: (Kind.SUCCESS, "Reminder delivered"),
    RunStatus.FAILED: (Kind.FAILED, "Reminder not delivered"),
}


def run_changed(run: Run) -> None:
    """Tell the owner that a run paused or ended; a skipped or canceled one is no news."""
    told = _TOLD.get(RunStatus(run.status))
    if told is None:
        return
    kind, title = told
    key = f"run:{run.pk}:{run.status}:{run.sent}:{run.failed}:{run.skipped}:{run.pending}"
    tell(run.owner_id, kind, key=key, title=title, body=_body(run), url=f"/reminders/{run.reminder_id}/")


def account_stopped(account: Account, reason: str) -> None:
    key = (
        f"account:{account.pk}:{account.status_changed_at:%Y%m%d%H%M%S}" if account.status_changed_at else ""
    )
    title = f"{account} stopped sending"
    body = f"It is {account.get_status_display().lower()}: {reason}. Its runs are paused."
    tell(account.owner_id, Kind.ACCOUNT, key=key, title=title, body=body, url=f"/accounts/{account.pk}/")


def _body(run: Run) -> str:
    groups = "group" if run.total == 1 else "groups"
    delivered = f"{run.sent} of {run.total} {groups} delivered."
    if run.status == RunStatus.PAUSED:
        return f"{delivered} Tap to resume or cancel."
    return f"{run.name}: {delivered}"
