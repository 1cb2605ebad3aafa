"""The facts on an account's page: used and effective limits with their sources, warm-up, runs and recent errors."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from accounts import warm_up_plan
from accounts.models import Account, GroupSync, Limit, Recipient, User
from accounts.models.account import EVERY_DAY, Action
from accounts.profiles import PROFILES
from accounts.roles import touchable
from activity.models import Attempt
from delivery.limits import lookup, usage
from delivery.limits.effective import Effective, Source
from delivery.limits.usage import Gauge
from delivery.limits.work_hours import hours_of
from delivery.models import Run, RunAccount
from delivery.pacing import LONG_SPANS, span_words
from delivery.sentences import account_state
from delivery.sentences.account_sentence import Why
from delivery.sentences.next_action import NextAction, next_action
from delivery.transports import kinds
from delivery.transports.base import Capabilities
from delivery.window import day_names

LATEST = 8
MOST_BARS = 40
TROUBLE_WITHIN = timedelta(days=30)


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
    """The facts that are refreshed while the page is open."""

    why: Why
    action: NextAction | None
    gauges: Sequence[Gauge]
    sync: GroupSync | None


def capabilities_of(account: Account) -> Capabilities:
    """Return what the account's kind of transport can do; reads no credentials."""
    kind = kinds().get(account.transport)
    return kind.default_capabilities if kind else Capabilities(actions=frozenset())


def actions_of(account: Account) -> list[str]:
    """Return the actions of the account, in the order of `Action`; each action has its own limits."""
    offered = capabilities_of(account).actions
    return [action for action in Action.values if action in offered]


def now_of(account: Account, *, now: datetime) -> Now:
    return Now(
        why=account_state.whys([account], now=now)[account.pk],
        action=action_of(account),
        gauges=gauges(account, now=now),
        sync=GroupSync.objects.filter(account=account).first() if capabilities_of(account).groups else None,
    )


def action_of(account: Account) -> NextAction | None:
    return next_action(account, pairs=capabilities_of(account).pairing)


def allowed_actions(accounts: Sequence[Account], user: User) -> dict[int, NextAction]:
    """Return the next action of each account for which there is one and the person may do it."""
    actions = {account.pk: action for account in accounts if (action := action_of(account)) is not None}
    rows = Account.objects.filter(pk__in=actions)
    allowed = {
        role: set(touchable(rows, user, role).values_list("pk", flat=True))
        for role in {action.role for action in actions.values()}
    }
    return {pk: action for pk, action in actions.items() if pk in allowed[action.role]}


def gauges(account: Account, *, now: datetime) -> list[Gauge]:
    """Return a gauge for each limit that is set, and always one for the day."""
    which = [(account, action) for action in actions_of(account)]
    if not which:
        return []
    limits = lookup.limits_for(which)
    used = usage.used_now(which, limits, now=now, most=usage.worth_counting(limits.values()))
    found = []
    for _, action in which:
        spent, held = used[account.pk, action], limits[account.pk, action]
        if held.per_minute:
            found.append(usage.minute_gauge(action, spent, held))
        if held.per_hour:
            found.append(usage.hour_gauge(action, spent, held))
        found.append(usage.day_gauge(action, spent, held))
        found += usage.long_gauges(action, spent, held)
    return found


def day_gauges(accounts: Sequence[Account], *, now: datetime) -> dict[int, Gauge]:
    """Return today's use of each account's first action by account id, for a list; takes at most two queries."""
    which = [(account, actions[0]) for account in accounts if (actions := actions_of(account))]
    if not which:
        return {}
    limits = lookup.limits_for(which)
    used = usage.used_now(which, limits, now=now, most=usage.worth_counting(limits.values()))
    return {
        account.pk: usage.day_gauge(action, used[account.pk, action], limits[account.pk, action])
        for account, action in which
    }


def explained(account: Account) -> list[ActionLimits]:
    """Return the limits of every action, in words."""
    own = lookup.limits_of([account])
    return [
        ActionLimits(
            action=action,
            label=usage.NOUNS[action],
            rows=_rows(account, own.get((account.pk, action)), action),
        )
        for action in actions_of(account)
    ]


NEW_PEOPLE = {"new_per_day": "New people per day", "new_per_week": "New people per week"}
NOT_SET = {"gap_min": "none", "batch_size": "no batches"}


def _rows(account: Account, own: Limit | None, action: str) -> list[LimitRow]:
    found = lookup.merged(account, action, own)
    held = found.limits
    values = {
        "per_minute": f"{held.per_minute:,}" if held.per_minute else "",
        "per_hour": f"{held.per_hour:,}" if held.per_hour else "",
        "per_day": f"{held.per_day:,}" if held.per_day else "",
        **{name: f"{cap:,}" for name in LONG_SPANS if (cap := getattr(held, name))},
        **{name: f"{cap:,}" for name in NEW_PEOPLE if (cap := getattr(held, name))},
        "gap_min": _gap(held.gap_min, held.gap_max),
        "batch_size": f"{held.batch_size:,}, then a break of {held.batch_pause:g} s"
        if held.batch_size
        else "",
    }
    labels = {
        "per_minute": "Per minute",
        "per_hour": "Per hour",
        "per_day": "Per day",
        **{name: f"Per {span_words(name)}" for name in LONG_SPANS},
        **NEW_PEOPLE,
        "gap_min": "Gap between messages",
        "batch_size": "Messages per batch",
    }
    return [
        LimitRow(
            label=labels[name],
            value=value or NOT_SET.get(name, "no limit"),
            source=_source(account, found, name) if value else "",
            own=found.sources.get(name) is Source.ACCOUNT,
        )
        for name, value in values.items()
    ]


LONG_GAP = 120  # seconds; from here on a gap is shown in minutes


def _gap(low: float | None, high: float | None) -> str:
    if not high:
        return ""
    low = low or 0
    unit, size = ("min", 60) if min(low or high, high) >= LONG_GAP else ("s", 1)
    return f"{high / size:.3g} {unit}" if low == high else f"{low / size:.3g} to {high / size:.3g} {unit}"


SAID = {
    Source.ACCOUNT: "set for this account",
    Source.CEILING: "the most that this installation allows",
    Source.SERVICE: "the service's own limit",
    Source.SETTINGS: "default of this installation",
}


def _source(account: Account, found: Effective, name: str) -> str:
    source = found.sources.get(name)
    if source is Source.PROFILE:
        before = ", as before 0.3" if account.as_before and PROFILES[account.profile].before else ""
        return f"profile {PROFILES[account.profile].label}{before}"
    if source is Source.WARM_UP:
        return f"warm-up, day {account.warmup_clean_days + 1}"
    return SAID[source] if source else ""


def working_hours(account: Account) -> str:
    """Return the account's own hours in words: 09:00 to 17:00, Mon, Tue."""
    hours = hours_of(account)
    if hours is None:
        return "any hour, every day"
    return f"{hours.start_hour:02d}:00 to {hours.end_hour:02d}:00, {_days(account.work_days)}"


def _days(bits: int) -> str:
    """Return the days for the middle of a sentence; only "every day" begins in lower case."""
    return "every day" if bits == EVERY_DAY else day_names(bits)


def warm_up(account: Account) -> list[WarmUpDay]:
    """Return the daily limits from the first day to the maximum, at most MOST_BARS; empty without a warm-up."""
    plan = account.warm_up
    if plan is None:
        return []
    days = max(len(warm_up_plan.curve(plan, 0)), account.warmup_clean_days + 1)
    step = -(-days // MOST_BARS)
    today = account.warmup_clean_days
    return [
        WarmUpDay(
            number=day + 1,
            cap=warm_up_plan.cap(plan, day),
            tone="today" if day <= today < day + step else "done" if day < today else "ahead",
        )
        for day in range(0, days, step)
    ]


def latest_runs(account: Account) -> list[Run]:
    shares = RunAccount.objects.filter(account=account).select_related("run").defer("run__parts")
    return [share.run for share in shares.order_by("-run_id")[:LATEST]]


def troubles(account: Account, *, now: datetime) -> list[Attempt]:
    """Return the last attempts of the account that were not simply sent."""
    rows = Attempt.objects.filter(account=account, at__gt=now - TROUBLE_WITHIN)
    bad = rows.exclude(outcome=Attempt.Outcome.SENT).select_related("target__recipient", "run")
    return list(bad.defer("run__parts").order_by("-at")[:LATEST])


def group_count(account: Account) -> int:
    return Recipient.objects.filter(account=account, archived_at=None).count()
