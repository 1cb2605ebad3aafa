"""python -m tests.chaos.driver: does what a test asks, in the environment of the processes under test.

One JSON object per line: `{"verb": ..., **arguments}` in, `{"answer": ...}` or `{"error": ...}` out. A process
of its own, since the tests' own Django belongs to another database.
"""

import json
import os
import sys
import traceback
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
django.setup()

from django.db import connection, transaction  # noqa: E402 - models are ready only now

from accounts.models import Account, Limit, Recipient, User  # noqa: E402
from accounts.recipients import consent  # noqa: E402
from activity.models import Attempt  # noqa: E402
from delivery import lifecycle  # noqa: E402
from delivery.engine import wakeups  # noqa: E402
from delivery.models import Run, RunTarget  # noqa: E402
from delivery.states import PauseReason  # noqa: E402
from reminders.fire import fire as fire_reminder  # noqa: E402
from reminders.models import Part, Reminder, ReminderAccount  # noqa: E402
from reminders.scheduling import schedule as schedule_reminder  # noqa: E402

COUNTS = ("total", "pending", "sending", "sent", "failed", "skipped", "unconfirmed")


def add_account(
    *, name: str, url: str, idempotent: bool, group_concurrency: int, limits: dict[str, Any]
) -> int:
    """An active account of the sandbox, with limits of its own."""
    owner, _ = User.objects.get_or_create(username="operator")
    account = Account.objects.create(
        owner=owner,
        name=name,
        channel="whatsapp",
        transport="sandbox",
        status=Account.Status.ACTIVE,
        profile="whatsapp_established",
        as_before=True,  # without a daily cap
        group_concurrency=group_concurrency,
        credentials={
            "base_url": url,
            "account": name,
            "token": "chaos",
            "idempotent": "yes" if idempotent else "no",
        },
    )
    Limit.objects.create(account=account, action="message", **limits)
    return account.pk


def change_limits(*, account: int, limits: dict[str, Any]) -> None:
    Limit.objects.filter(account_id=account).update(**limits)
    wakeups.wake_on_commit([account])


def fire(*, account: int, targets: int, parts: int, people: bool) -> int:
    """A run of `targets` new groups or people, around the clock."""
    sender = Account.objects.select_related("owner").get(pk=account)
    by_hand = Reminder.Schedule.BY_HAND
    return fire_reminder(_reminder(sender, targets, parts=parts, people=people, schedule=by_hand)).pk


def _reminder(
    sender: Account, targets: int, *, parts: int = 1, people: bool = False, **when: Any
) -> Reminder:
    reminder = Reminder.objects.create(
        owner=sender.owner,
        name=f"To the groups of {sender.name}",
        window_start_hour=0,
        window_end_hour=24,
        **when,
    )
    for position in range(parts):
        Part.objects.create(reminder=reminder, position=position, text=f"Part {position} for {{{{ name }}}}")
    ReminderAccount.objects.create(reminder=reminder, account=sender, position=0)
    reminder.recipients.set(_recipients(sender, targets, people=people))
    return reminder


def schedule(*, account: int, targets: int, after: list[float]) -> list[int]:
    """One-off reminders to new groups, due so many seconds from now."""
    sender = Account.objects.select_related("owner").get(pk=account)
    now = datetime.now(UTC)
    return [
        schedule_reminder(
            _reminder(sender, targets, schedule="once", fire_at=now + timedelta(seconds=seconds))
        ).pk
        for seconds in after
    ]


def firings(*, reminders: list[int]) -> list[dict[str, Any]]:
    """The runs of reminders, and whether each is for the moment at which its reminder was due."""
    runs = Run.objects.filter(reminder__in=reminders).select_related("reminder").order_by("pk")
    return [
        {
            "run": run.pk,
            "reminder": run.reminder_id,
            "status": run.status,
            "on_its_moment": run.due_at == run.reminder.fire_at,
        }
        for run in runs
    ]


def _recipients(sender: Account, count: int, *, people: bool) -> list[Recipient]:
    first = Recipient.objects.count()
    return Recipient.objects.bulk_create(
        Recipient(
            owner=sender.owner,
            channel=sender.channel,
            kind=Recipient.Kind.PERSON if people else Recipient.Kind.GROUP,
            address=f"+6012{number:07}" if people else f"120363{number:012}@g.us",
            name=f"Recipient {number}",
        )
        for number in range(first, first + count)
    )


def run(*, run: int) -> dict[str, Any]:
    found = Run.objects.get(pk=run)
    names = (*COUNTS, "status", "pause_reason", "summary")
    return {name: getattr(found, name) for name in names}


def targets(*, run: int) -> list[dict[str, Any]]:
    names = ("key", "status", "fence", "attempts", "error")
    rows = RunTarget.objects.filter(run_id=run).select_related("recipient", "run").order_by("pk")
    return [{name: getattr(row, name) for name in names} | {"address": row.recipient.address} for row in rows]


def outcomes(*, run: int) -> list[str]:
    """The ledger's words, one per attempt."""
    return list(Attempt.objects.filter(run_id=run).order_by("pk").values_list("outcome", flat=True))


def begun(*, run: int) -> list[int]:
    """Return when each attempt began, in milliseconds."""
    times = Attempt.objects.filter(run_id=run).order_by("at").values_list("at", flat=True)
    return [round(at.timestamp() * 1000) for at in times]


def account(*, account: int) -> dict[str, Any]:
    found = Account.objects.get(pk=account)
    names = ("status", "waiting_for", "waiting_detail", "slow_factor", "fence")
    return {name: getattr(found, name) for name in names}


def start_account(*, account: int) -> None:
    lifecycle.start_account(Account.objects.get(pk=account))


def pause(*, run: int) -> None:
    lifecycle.pause(Run.objects.get(pk=run), reason=PauseReason.OPERATOR)


def opt_out(*, run: int, count: int) -> list[str]:
    """Opt out the last recipients of a run that have nothing yet, and answer with their addresses."""
    waiting = RunTarget.objects.filter(run_id=run, status="pending").select_related("recipient")
    people = [target.recipient for target in waiting.order_by("-pk")[:count]]
    for person in people:
        consent.opt_out(person, how="Wrote STOP.")
    return [person.address for person in people]


def resume(*, run: int) -> None:
    lifecycle.resume(Run.objects.get(pk=run))


def cancel(*, run: int) -> None:
    lifecycle.cancel(Run.objects.get(pk=run))


def send_pumps(*, account: int, times: int) -> None:
    wakeups.wake([account] * times)


def close_window(*, run: int, seconds: float) -> int:
    """Let the window of a run end `seconds` from now, and answer when, in milliseconds.

    A window ends on the hour, so the run gets the hours that ended last where it is noon now, and the moment
    of their end is moved.
    """
    now = datetime.now(UTC)
    ends = now + timedelta(seconds=seconds)
    west = now.hour - 12
    zone = f"Etc/GMT{west:+d}" if west else "UTC"
    Run.objects.filter(pk=run).update(closes_at=ends, window_start_hour=6, window_end_hour=12, zone=zone)
    return int(ends.timestamp() * 1000)


def open_window(*, run: int) -> None:
    Run.objects.filter(pk=run).update(window_start_hour=0, window_end_hour=24)


VERBS: dict[str, Callable[..., Any]] = {
    verb.__name__: verb
    for verb in (
        add_account,
        change_limits,
        fire,
        schedule,
        firings,
        run,
        targets,
        outcomes,
        begun,
        account,
        start_account,
        pause,
        opt_out,
        resume,
        cancel,
        send_pumps,
        close_window,
        open_window,
    )
}


def obey(wish: dict[str, Any]) -> dict[str, Any]:
    verb = VERBS[wish.pop("verb")]
    try:
        with transaction.atomic():
            return {"answer": verb(**wish)}
    except Exception:  # noqa: BLE001 - the test decides what a failure means
        return {"error": traceback.format_exc()}
    finally:
        connection.close()


def main() -> None:
    for line in sys.stdin:
        sys.stdout.write(json.dumps(obey(json.loads(line))) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
