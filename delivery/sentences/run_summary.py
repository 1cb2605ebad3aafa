"""A run's state in a sentence for its operator: the event, its reason and a remedy (SPEC W5)."""

from collections.abc import Sequence
from datetime import datetime
from zoneinfo import ZoneInfo

from django.db.models import Avg
from django.utils import timezone
from django.utils.text import capfirst

from accounts.models import Account, Recipient
from activity.components.times import clock, dated
from activity.models import Attempt
from delivery import conf
from delivery.audience import in_words
from delivery.limits.full_days import full_accounts
from delivery.models import Run, RunTarget
from delivery.states import PauseReason, RunStatus, WaitReason

LATEST = 200  # attempts that are read to find what slowed a run down
SAMPLE = 100  # targets at each end of a run that are read to name its recipients
SLOW_SEND_MS = 3000


def window_closed(run: Run) -> str:
    again = "It continues when the window opens again." if run.opens_at else "Resume it when you like."
    return (
        f"Delivery window closed at {run.window_end_hour:02d}:00 ({run.zone}). "
        f"{progress(run)} {held_back(run)} {again}"
    )


def day_full(run: Run, accounts: Sequence[Account], *, first: datetime) -> str:
    """Return the sentence for a run that daily limits stop until its window closes (P10)."""
    names = " and ".join(str(account) for account in accounts)
    again = "It continues then" if run.opens_at else "Resume it to continue then"
    return (
        f"Daily limit reached: {names} can send no more today. {progress(run)} "
        f"The rest is planned for later days, from {dated(first, ZoneInfo(run.zone))} on. "
        f"{again}. To continue today, raise the limit and resume."
    )


def closed_before_first(run: Run) -> str:
    return (
        f"Delivery window closed at {run.window_end_hour:02d}:00 ({run.zone}) before anything was sent. "
        "Send it earlier, or widen the window."
    )


def missed(run: Run) -> str:
    return (
        f"Started after the delivery window had closed at {run.window_end_hour:02d}:00 ({run.zone}): nothing was sent. "
        "Send it in its delivery hours, or widen them."
    )


def behind(ahead: int) -> str:
    return f"Waits for run {ahead} of the same reminder to end. Cancel run {ahead} to start this one now."


def _errors(run: Run) -> str:
    """Return what went wrong, as "Too many errors: 3 of 10 attempts failed, 4 came back later."."""
    attempts = run.sent + run.failed + run.unconfirmed
    parts = [f"{run.returned} came back later"] * bool(run.returned)
    parts += [f"{run.unconfirmed} {'is' if run.unconfirmed == 1 else 'are'} unconfirmed"] * bool(
        run.unconfirmed
    )
    if run.failed or not parts:
        return f"Too many errors: {', '.join([f'{run.failed} of {attempts} attempts failed', *parts])}."
    return f"Too many errors in {attempts} attempts: {', '.join(parts)}."


def paused(run: Run) -> str:
    match run.pause_reason:
        case PauseReason.ERROR_RATE:
            why = f"{_errors(run)} Look at these messages, then resume or cancel."
        case PauseReason.OPERATOR:
            why = f"Paused by {run.changed_by}." if run.changed_by else "Paused by an operator."
        case _:
            why = "Resume it when the account can send again."
    return f"{why} {progress(run)}"


def canceling(run: Run) -> str:
    """Return the sentence for a canceled run until its last target has a result."""
    who = f"Canceled by {run.canceled_by}" if run.canceled_by else "Canceled"
    if run.pending:
        rest = f"{run.pending:,} message{' is' if run.pending == 1 else 's are'} being taken back"
        return f"{who}: nothing more is sent, and {rest}."
    return f"{who}: nothing more is sent. {run.sending:,} on their way still get their result."


def details_removed(run: Run) -> str:
    """Return the summary of a run whose targets are removed: what it was, and that only the counts are left."""
    when = f"{run.details_removed_at:%Y-%m-%d}"
    return f"{run.summary} The details of each recipient were removed on {when}; the counts stay.".strip()


def account_stopped(run: Run, account: Account, reason: str) -> str:
    return f"{account} stopped sending: {reason.rstrip('.')}. {progress(run)} Start the account again to continue."


def replanned(run: Run, account: Account, *, cap: int | None, targets: int, first: datetime) -> str:
    """Return the sentence for a run that limits moved in part to later days (P10); `cap` is that of a day."""
    reached = f"{account} can send {cap:,} messages per day" if cap else f"{account} has reached its limit"
    moved = f"{counted(run, targets)} {'was' if targets == 1 else 'were'}"
    return f"{reached}: {moved} moved to later days, the first to {dated(first, ZoneInfo(run.zone))}."


def canceled(run: Run) -> str:
    """Say by whom and when a run was canceled: Canceled by demo at 10:29; with the day if it is not that of firing."""
    who = f"Canceled by {run.canceled_by}" if run.canceled_by else "Canceled"
    if run.canceled_at is None:
        return who
    zone = ZoneInfo(run.zone)
    at = clock(run.canceled_at.astimezone(zone), run.fired_at.astimezone(zone))
    return f"{who} at {at}" if len(at) == len("10:29") else f"{who} on {at}"


def finished(run: Run) -> str:
    if run.was_canceled:
        return ", ".join([canceled(run), f"{run.sent:,} of {run.expected:,} sent", *_besides(run)]) + "."
    return capfirst(", ".join([delivered(run), *rest(run)])) + "."


def delivered(run: Run) -> str:
    """Return the progress in the same words everywhere: 37 of 100 groups delivered."""
    if run.total and not run.expected:
        return "no recipient could get it"
    return f"{run.sent:,} of {counted(run, run.expected)} delivered"


def rest(run: Run) -> list[str]:
    """List the non-empty outcomes other than sent, and how many of those sent came back."""
    counts = (
        (run.returned, "returned later"),
        (run.failed, "failed"),
        (run.skipped - run.left_out, "skipped"),
        (run.unconfirmed, "unconfirmed"),
        (run.left_out, "left out"),
    )
    return [f"{count:,} {word}" for count, word in counts if count]


def _besides(run: Run) -> list[str]:
    """List what a canceled run has besides sent and canceled messages."""
    counts = ((run.failed, "failed"), (run.unconfirmed, "unconfirmed"))
    return [f"{count:,} {word}" for count, word in counts if count]


def returned(run: Run) -> str:
    """Return how many of the messages that a service took failed afterwards; empty for none."""
    if not run.returned:
        return ""
    share = f"{run.returned / run.sent:.1%}".replace(".0%", "%")
    return f"{run.returned:,} of {run.sent:,} sent messages came back ({share})."


def slowed(run: Run) -> str:
    """Return the sentence for a run that errors slow down (P6, L7); empty where they do not."""
    if run.status != RunStatus.RUNNING or not errors_slow(run):
        return ""
    bad, all_ = run.failed + run.unconfirmed + run.returned, run.sent + run.failed + run.unconfirmed
    return (
        f"Sending more slowly because of errors: {bad:,} of {all_:,} messages failed, came back or are in doubt. "
        "Check their reasons; above 20 % the run pauses."
    )


def errors_slow(run: Run) -> bool:
    return conf.slows(run.sent - run.returned, run.failed + run.unconfirmed + run.returned)


def held_back(run: Run) -> str:
    """Return what kept a run from finishing in its window, and the remedy."""
    latest = Attempt.objects.filter(run=run).order_by("-id")[:LATEST]
    took = Attempt.objects.filter(pk__in=latest.values("pk")).aggregate(ms=Avg("took_ms"))["ms"] or 0
    accounts = Account.objects.filter(run_accounts__run=run)
    waits = set(accounts.values_list("waiting_for", flat=True))
    if troubled := accounts.exclude(trouble_kind="").order_by("pk").first():
        why = troubled.trouble.rstrip(".") or "see its page"
        return f"{troubled} could not send: {why}. Open the account to see more."
    if full_accounts(run, now=timezone.now()):
        return "The account's daily limit was reached: raise it, or resume tomorrow."
    if errors_slow(run) or WaitReason.SLOWED in waits:
        return "Errors slowed it down: check the failed recipients and the account."
    if took > SLOW_SEND_MS and any(part.get("kind") == "media" for part in run.parts):
        return "Large files took most of the time: use smaller ones."
    return "The account's limits were too low for these hours: widen the hours, or raise the limits."


def counted(run: Run, count: int) -> str:
    """Return "100 groups" or "100 people", and "100 recipients" where they are of several kinds or not known."""
    return in_words(count, _kinds(run))


def _kinds(run: Run) -> set[str]:
    """Return the kinds of the recipients, by a sample: a run may have a million of them."""
    if run.details_removed_at is not None:
        return set()
    kinds = RunTarget.objects.filter(run=run.pk).values_list("recipient__kind", flat=True)
    ends = {*kinds.order_by("status", "id")[:SAMPLE], *kinds.order_by("-status", "-id")[:SAMPLE]}
    return ends or ({Recipient.Kind.GROUP} if run.action == "message" else set())


def progress(run: Run) -> str:
    return f"{delivered(run)}, {run.pending + run.sending:,} still pending."
