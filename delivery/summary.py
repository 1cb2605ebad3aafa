"""A run's state in a sentence for its operator: what happened, why, and what helps (SPEC W5)."""

from collections.abc import Sequence
from datetime import datetime
from zoneinfo import ZoneInfo

from django.db.models import Avg
from django.utils import timezone
from django.utils.text import capfirst

from accounts.models import Account
from activity.models import Attempt
from delivery.full_days import full_accounts
from delivery.models import Run
from delivery.pacing import error_rate
from delivery.states import PauseReason, WaitReason

LATEST = 200  # attempts that say what held a run back
ERRORS = 0.05
SLOW_SEND_MS = 3000


def window_closed(run: Run) -> str:
    again = "It goes on by itself at the next opening." if run.opens_at else "Resume it when it suits you."
    return (
        f"Delivery window closed at {run.window_end_hour:02d}:00 ({run.zone}). "
        f"{_progress(run)} {held_back(run)} {again}"
    )


def day_full(run: Run, accounts: Sequence[Account], *, first: datetime) -> str:
    """Daily caps leave it nothing to send before its window closes (P10)."""
    names = " and ".join(str(account) for account in accounts)
    again = "It goes on by itself then" if run.opens_at else "Resume it, and it goes on then"
    return (
        f"Daily cap reached: {names} may send no more today. {_progress(run)} "
        f"The rest is planned for later days, from {_moment(run, first)} on. "
        f"{again}. To go on today, raise the cap and resume it."
    )


def closed_before_first(run: Run) -> str:
    return (
        f"Delivery window closed at {run.window_end_hour:02d}:00 ({run.zone}) before anything was sent. "
        "Fire it earlier in its window, or widen the window."
    )


def missed(run: Run) -> str:
    return (
        f"Fired after that day's window had closed at {run.window_end_hour:02d}:00 ({run.zone}): nothing was sent. "
        "Fire it inside its delivery hours, or widen them."
    )


def behind(ahead: int) -> str:
    return f"Waits for run {ahead} of the same reminder to end. Cancel that one to start this one now."


def paused(run: Run) -> str:
    match run.pause_reason:
        case PauseReason.ERROR_RATE:
            why = (
                f"Too many errors: {run.failed} of {run.sent + run.failed} attempts failed. "
                "Look at the failed targets, then resume or cancel."
            )
        case PauseReason.OPERATOR:
            why = f"Paused by {run.changed_by}." if run.changed_by else "Paused by an operator."
        case _:
            why = "Resume it when the account can send again."
    return f"{why} {_progress(run)}"


def account_stopped(run: Run, account: Account, reason: str) -> str:
    return (
        f"{account} stopped sending: {reason.rstrip('.')}. {_progress(run)} Start the account again to go on."
    )


def replanned(run: Run, account: Account, *, cap: int, targets: int, first: datetime) -> str:
    """The day had no room for all of it (P10)."""
    groups = "1 group was" if targets == 1 else f"{targets:,} groups were"
    return (
        f"{account} may send {cap:,} messages per day: {groups} moved to later days, "
        f"the first to {_moment(run, first)}."
    )


def finished(run: Run) -> str:
    return capfirst(", ".join([delivered(run), *rest(run)])) + "."


def delivered(run: Run) -> str:
    """How far it is, in the same words everywhere: 37 of 100 groups delivered."""
    if run.total and not run.expected:
        return "nobody could get it"
    one, many = ("group", "groups") if run.action == "message" else ("recipient", "recipients")
    return f"{run.sent:,} of {run.expected:,} {one if run.expected == 1 else many} delivered"


def rest(run: Run) -> list[str]:
    """What became of the others; nothing of what nobody is in."""
    counts = (
        (run.failed, "failed"),
        (run.skipped - run.left_out, "skipped"),
        (run.unconfirmed, "unconfirmed"),
        (run.left_out, "left out"),
    )
    return [f"{count:,} {word}" for count, word in counts if count]


def held_back(run: Run) -> str:
    """What kept a run from finishing in its window, and the remedy for that."""
    latest = Attempt.objects.filter(run=run).order_by("-id")[:LATEST]
    took = Attempt.objects.filter(pk__in=latest.values("pk")).aggregate(ms=Avg("took_ms"))["ms"] or 0
    waits = set(Account.objects.filter(run_accounts__run=run).values_list("waiting_for", flat=True))
    if full_accounts(run, now=timezone.now()):
        return "The account's daily cap was reached: raise the cap, or share the run with another account."
    if error_rate(run.sent, run.failed) > ERRORS or WaitReason.SLOWED in waits:
        return "Errors slowed it down: look at the failed targets and at the account's health."
    if took > SLOW_SEND_MS and any(part.get("kind") == "media" for part in run.parts):
        return "Large media took most of the time: shrink the file."
    return "The account's rate was the limit: widen the window, or share the run with another account."


def _progress(run: Run) -> str:
    return f"{delivered(run)}, {run.pending + run.sending:,} still pending."


def _moment(run: Run, at: datetime) -> str:
    local = at.astimezone(ZoneInfo(run.zone))
    return f"{local:%a} {local.day} {local:%b}, {local:%H:%M} ({run.zone})"
