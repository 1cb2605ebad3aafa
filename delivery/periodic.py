"""Registers the system's own periodic jobs as rows of django-celery-beat."""

from django.conf import settings
from django_celery_beat.models import IntervalSchedule, PeriodicTask


def plan_tick() -> None:
    """Register the tick, as often as the settings say."""
    plan(
        "Paceline's tick",
        task="delivery.tick",
        description="Opens and closes windows, wakes accounts. Nothing is sent without it.",
    )


def plan_reports() -> None:
    """Register the jobs that handle reports of services, every minute."""
    plan(
        "Paceline's webhooks",
        task="delivery.register_webhooks",
        description="Tells services where to report, if they do not know.",
        every=60,
    )
    plan(
        "Paceline's polls",
        task="delivery.poll",
        description="Fetches replies from services that cannot report them.",
        every=15,
    )
    plan(
        "Paceline's inbound events",
        task="reminders.sweep_inbound",
        description="Takes up reports that came too early or whose task was lost.",
        every=60,
    )
    plan(
        "Paceline's hidden addresses",
        task="delivery.ask_who_is_hidden",
        description="Asks services whose number is behind a hidden address that wrote to us.",
        every=60,
    )


def plan_health() -> None:
    plan(
        "Paceline's account health",
        task="delivery.watch_health",
        description="Counts messages that came back; slows down and pauses accounts with too many of them.",
        every=120,
    )


def plan_pruning() -> None:
    plan(
        "Paceline's pruning",
        task="activity.prune",
        description="Removes details that are older than KEEP_DAYS, if it is set.",
        every=600,
    )


def plan_ledger_months() -> None:
    plan(
        "Paceline's ledger",
        task="activity.make_ledger_months",
        description="Makes the ledger's tables of the next months.",
        every=600,
    )


def plan_sender_domains() -> None:
    plan(
        "Paceline's sender domains",
        task="delivery.check_sender_domains",
        description="Looks up SPF, DKIM and DMARC of e-mail accounts, each once a day.",
        every=600,
    )


def plan_own_limits() -> None:
    plan(
        "Paceline's look at services' own limits",
        task="delivery.read_all_own_limits",
        description="Asks services for their own quota, lock or limit of an account, each every 15 minutes.",
        every=120,
    )


def plan_imports() -> None:
    plan(
        "Paceline's imports",
        task="accounts.rescue_imports",
        description="Continues imports whose worker died.",
        every=20,
    )


def plan(name: str, *, task: str, description: str, every: int = 0) -> None:
    """Register a job every so many seconds, or with every tick. One that no worker took in time is dropped."""
    interval, _ = IntervalSchedule.objects.get_or_create(
        every=every or settings.TICK_SECONDS, period=IntervalSchedule.SECONDS
    )
    PeriodicTask.objects.update_or_create(
        name=name,
        defaults={"task": task, "interval": interval, "expire_seconds": 10, "description": description},
    )


def plan_warm_ups() -> None:
    """Register the warm-up job. It runs all day, since each zone has midnight at another moment."""
    plan(
        "Paceline's warm-ups",
        task="delivery.judge_days",
        every=600,
        description="Raises the daily cap of new accounts after each day without trouble.",
    )
