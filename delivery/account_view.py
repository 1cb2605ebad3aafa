"""What the account's page shows: use of its limits, where they come from, its warm-up, its runs and troubles."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Count, Q

from accounts import warmup
from accounts.models import Account, GroupSync, Limit, Recipient
from accounts.models.account import Action
from accounts.profiles import PROFILES
from activity.models import Attempt
from delivery import limits
from delivery.effective import Effective, Source
from delivery.models import Run, RunAccount
from delivery.planning import usage
from delivery.states import RunStatus
from delivery.transports import kinds
from delivery.transports.base import Capabilities
from delivery.why import NextAction, Why, next_action, why

LATEST = 8
MOST_BARS = 40
TROUBLE_WITHIN = timedelta(days=30)

PER = {"per_minute": "this minute", "per_hour": "this hour", "per_day": "today"}
PLURAL: Mapping[str, str] = {
    Action.MESSAGE: "Messages",
    Action.EMAIL: "E-mails",
    Action.CONNECTION_REQUEST: "Invitations",
    Action.INMAIL: "InMails",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Gauge:
    label: str
    used: int
    limit: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitRow:
    """One limit in words, and where it comes from."""

    label: str
    value: str
    source: str
    own: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionLimits:
    action: str
    label: str
    rows: Sequence[LimitRow]


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmUpDay:
    number: int
    cap: int
    tone: str  # done, today, ahead


@dataclass(frozen=True, slots=True, kw_only=True)
class Now:
    """What changes while one looks."""

    why: Why
    action: NextAction | None
    gauges: Sequence[Gauge]
    sync: GroupSync | None


def capabilities_of(account: Account) -> Capabilities:
    """What its kind can do; no credentials are opened for it."""
    kind = kinds().get(account.transport)
    return kind.default_capabilities if kind else Capabilities(actions=frozenset())


def actions_of(account: Account) -> list[str]:
    """In the order of the choices; each has limits of its own."""
    offered = capabilities_of(account).actions
    return [action for action in Action.values if action in offered]


def now_of(account: Account, *, now: datetime) -> Now:
    counts = run_counts([account])
    return Now(
        why=why_of(account, counts, now=now),
        action=action_of(account),
        gauges=gauges(account, now=now),
        sync=GroupSync.objects.filter(account=account).first() if capabilities_of(account).groups else None,
    )


def action_of(account: Account) -> NextAction | None:
    return next_action(account, pairs=capabilities_of(account).pairing)


Counts = Mapping[int, tuple[int, int]]


def run_counts(accounts: Sequence[Account]) -> Counts:
    """How many open runs of each account are running, and how many paused; one query."""
    shares = RunAccount.objects.filter(account__in=[account.pk for account in accounts], open=True)
    rows = shares.values("account").annotate(
        running=Count("pk", filter=Q(run__status=RunStatus.RUNNING)),
        paused=Count("pk", filter=Q(run__status=RunStatus.PAUSED)),
    )
    return {row["account"]: (row["running"], row["paused"]) for row in rows}


def why_of(account: Account, counts: Counts, *, now: datetime) -> Why:
    running, paused = counts.get(account.pk, (0, 0))
    return why(account, running=running, paused=paused, now=now)


def gauges(account: Account, *, now: datetime) -> list[Gauge]:
    """How much of each limit is used; a limit that is not set has no gauge, except the day's."""
    which = [(account, action) for action in actions_of(account)]
    if not which:
        return []
    used, own = usage.used(which, now=now), limits.limits_of([account])
    found = []
    for _, action in which:
        held = limits.merged(account, action, own.get((account.pk, action))).limits
        sent = used[account.pk, action]
        spent = {"per_minute": _last_minute(account, action, now), "per_hour": sent.hour, "per_day": sent.day}
        for name, period in PER.items():
            limit = getattr(held, name)
            if limit or name == "per_day":
                label = f"{PLURAL[action]} {period}"
                found.append(Gauge(label=label, used=spent[name], limit=limit))
    return found


def _last_minute(account: Account, action: str, now: datetime) -> int:
    since = now - timedelta(seconds=settings.MINUTE_SECONDS)
    return Attempt.objects.filter(account=account, action=action, at__gt=since).count()


def day_gauges(accounts: Sequence[Account], *, now: datetime) -> dict[int, Gauge]:
    """Today's use of each account's first action, for a list; two queries."""
    which = [(account, actions[0]) for account in accounts if (actions := actions_of(account))]
    if not which:
        return {}
    used, own = usage.used(which, now=now), limits.limits_of(accounts)
    return {
        account.pk: Gauge(
            label=f"{PLURAL[action]} today",
            used=used[account.pk, action].day,
            limit=limits.merged(account, action, own.get((account.pk, action))).limits.per_day,
        )
        for account, action in which
    }


def explained(account: Account) -> list[ActionLimits]:
    """The limits of every action, in words."""
    own = limits.limits_of([account])
    return [
        ActionLimits(
            action=action,
            label=PLURAL[action],
            rows=_rows(account, own.get((account.pk, action)), action),
        )
        for action in actions_of(account)
    ]


def _rows(account: Account, own: Limit | None, action: str) -> list[LimitRow]:
    found = limits.merged(account, action, own)
    held = found.limits
    values = {
        "per_minute": f"{held.per_minute:,}" if held.per_minute else "",
        "per_hour": f"{held.per_hour:,}" if held.per_hour else "",
        "per_day": f"{held.per_day:,}" if held.per_day else "",
        "gap_min": _gap(held.gap_min, held.gap_max),
        "batch_size": f"{held.batch_size:,}, then {held.batch_pause:g} s" if held.batch_size else "",
    }
    labels = {
        "per_minute": "Per minute",
        "per_hour": "Per hour",
        "per_day": "Per day",
        "gap_min": "Between two",
        "batch_size": "At a stretch",
    }
    return [
        LimitRow(
            label=labels[name],
            value=value or "no limit",
            source=_source(account, found, name) if value else "",
            own=found.sources.get(name) is Source.ACCOUNT,
        )
        for name, value in values.items()
    ]


def _gap(low: float | None, high: float | None) -> str:
    if not high:
        return ""
    return f"{high:g} s" if low == high else f"{low or 0:g} to {high:g} s"


def _source(account: Account, found: Effective, name: str) -> str:
    match found.sources.get(name):
        case Source.ACCOUNT:
            return "set for this account"
        case Source.PROFILE:
            return f"profile {PROFILES[account.profile].label}"
        case Source.WARM_UP:
            return f"warm-up, day {account.warmup_clean_days + 1}"
        case Source.SETTINGS:
            return "default of this installation"
        case None:
            return ""


def warm_up(account: Account) -> list[WarmUpDay]:
    """The caps from the first day to the ceiling, a few dozen at most; empty where there is no warm-up."""
    plan = account.warm_up
    if plan is None:
        return []
    days = max(len(warmup.curve(plan, 0)), account.warmup_clean_days + 1)
    step = -(-days // MOST_BARS)
    today = account.warmup_clean_days
    return [
        WarmUpDay(
            number=day + 1,
            cap=warmup.cap(plan, day),
            tone="today" if day <= today < day + step else "done" if day < today else "ahead",
        )
        for day in range(0, days, step)
    ]


def latest_runs(account: Account) -> list[Run]:
    shares = RunAccount.objects.filter(account=account).select_related("run").defer("run__parts")
    return [share.run for share in shares.order_by("-run_id")[:LATEST]]


def troubles(account: Account, *, now: datetime) -> list[Attempt]:
    """Its last messages that were not simply sent."""
    rows = Attempt.objects.filter(account=account, at__gt=now - TROUBLE_WITHIN)
    bad = rows.exclude(outcome=Attempt.Outcome.SENT).select_related("target__recipient", "run")
    return list(bad.defer("run__parts").order_by("-at")[:LATEST])


def group_count(account: Account) -> int:
    return Recipient.objects.filter(account=account, archived_at=None).count()
