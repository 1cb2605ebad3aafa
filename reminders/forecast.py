"""The forecast of a reminder before it is scheduled (SPEC S4, S5)."""

from collections.abc import Sequence
from datetime import datetime

from accounts.models import Account
from delivery.audience import Audience
from delivery.models import Run
from delivery.planning import forecasts, rooms, strangers
from delivery.planning.forecasts import Plan, foresee
from delivery.planning.words import Forecast
from delivery.states import SETTLED_RUN, RunStatus
from reminders.headcount import headcount
from reminders.models import Part, Reminder
from reminders.moments import BadCronError, next_moment, too_far
from reminders.readiness import timetable_of, window_of
from reminders.upcoming import scheduled


def forecast(
    reminder: Reminder, *, now: datetime, fires_at: datetime | None = None, reached: Audience | None = None
) -> Forecast:
    """Return how the reminder's next run will go if it is fired at `fires_at`, or when it is due. Never blocks.

    A caller that has counted the audience passes it as `reached`.
    """
    accounts = _accounts(reminder)
    fires_at = fires_at or _next_firing(reminder, now)
    if too_far(fires_at, now):  # the year of a draft was mistyped, and the calendar may end there
        fires_at = now
    ids, parts = [account.pk for account in accounts], max(1, _parts(reminder))
    deal = rooms.deal(ids, reminder.action, parts=parts, now=now)
    plan = Plan(
        accounts=accounts,
        targets=(reached or headcount(reminder, ids)).shares(deal),
        parts=parts,
        action=reminder.action,
        window=window_of(reminder),
        fires_at=max(now, fires_at),
        priority=reminder.priority,
        resumes_by_itself=reminder.on_close == Reminder.OnClose.RESUME,
        drip=(reminder.drip_gap_min, reminder.drip_gap_max) if reminder.drip else None,
        scheduled=lambda until: scheduled(accounts, until=until, but=reminder.pk, now=now),
        new=strangers.of_audience(reminder.pk, deal),
    )
    return foresee(plan, now=now)


def forecast_run(run: Run, *, now: datetime) -> Forecast | None:
    """Return how an open run will continue, or None for one that is settled or waits for another run to end."""
    if run.status in SETTLED_RUN or run.canceled_at or (run.status == RunStatus.QUEUED and not run.opens_at):
        return None
    accounts = Account.objects.filter(run_accounts__run=run)
    return forecasts.forecast(
        run,
        now=now,
        scheduled=lambda until: scheduled(accounts, until=until, but=run.reminder_id, now=now),
    )


def _next_firing(reminder: Reminder, now: datetime) -> datetime:
    """Return when the reminder is due, or would be as a draft; now, when its time cannot be read."""
    if reminder.next_fire_at is not None:
        return reminder.next_fire_at
    timetable = timetable_of(reminder)
    try:
        return (timetable and next_moment(timetable, after=now)) or now
    except BadCronError:
        return now


def _accounts(reminder: Reminder) -> Sequence[Account]:
    rows = reminder.reminder_accounts.order_by("position", "id").select_related("account__own_limits")
    return [row.account for row in rows.defer("account__credentials")]


def _parts(reminder: Reminder) -> int:
    return reminder.parts.filter(role=Part.Role.FIRST).count()
