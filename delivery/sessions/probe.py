"""Asks the services of accounts that went offline by themselves whether they are back (SPEC P7).

An active account in trouble is tested by its own pump. An offline account has no pump, so the tick finds those whose
next try is due, and a task asks. The service's answer becomes the account's status as usual (`connect.py`): an
account that is back starts again, and the runs that it had stopped continue.
"""

from contextlib import suppress
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import QuerySet

from accounts.models import Account
from config.celery import app
from delivery import conf
from delivery.outcomes import Unreachable
from delivery.retry import decide
from delivery.sessions import ask, connect

TASK = "delivery.probe"
MOST_AT_ONCE = 20
EXPIRES = 60  # seconds after which a task that no worker took is dropped


def ask_due(now: datetime) -> None:
    """Ask the service of every offline account whose next try is due, by tasks."""
    if not _waiting(now).exists():
        return
    for account_id in _take_due(now):
        app.send_task(TASK, (account_id,), expires=EXPIRES)


def probe(account_id: int) -> None:
    """Ask one service, and apply its answer."""
    account = Account.objects.get(pk=account_id)
    if account.status == Account.Status.OFFLINE and account.archived_at is None:
        with suppress(ask.NoAnswerError):  # asked again after the next wait
            connect.look(account)


@transaction.atomic
def _take_due(now: datetime) -> list[int]:
    """Return the accounts to ask now, and set their next try, so that two ticks never ask the same account."""
    free = _waiting(now).select_for_update(skip_locked=True, no_key=True)
    due = list(free.order_by("held_until")[:MOST_AT_ONCE])
    for account in due:
        account.trouble_count += 1
        account.held_until = now + timedelta(seconds=_wait(account.trouble_count))
        account.save(update_fields=["trouble_count", "held_until"])
    return [account.pk for account in due]


def _waiting(now: datetime) -> QuerySet[Account]:
    offline = Account.objects.filter(status=Account.Status.OFFLINE, archived_at=None, held_until__lte=now)
    return offline.exclude(trouble_kind="")


def _wait(streak: int) -> float:
    verdict = decide(
        Unreachable(reason=""), attempt=1, idempotent=False, rules=conf.retry_rules(), streak=streak
    )
    return verdict.hold or 0.0
