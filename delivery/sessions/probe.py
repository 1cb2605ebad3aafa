"""Asks the services of accounts that went offline by themselves whether they are back (SPEC P7).

An active account in trouble is tested by its own pump. An offline account has no pump, so the tick finds those whose
next try is due, and a task asks. The service's answer becomes the account's status as usual (`connect.py`): an
account that is back starts again, and the runs that it had stopped continue.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

import structlog
from django.db import transaction
from django.db.models import F, QuerySet, Window
from django.db.models.functions import RowNumber
from django.utils import timezone

from accounts.models import Account
from config.celery import app
from config.long_tasks import one_pass
from delivery import conf
from delivery.outcomes import Unreachable
from delivery.retry import decide
from delivery.sessions import ask, connect

log = structlog.get_logger(__name__)

TASK = "delivery.probe_offline"
MOST_AT_ONCE = 50
EXPIRES = 10  # seconds after which a task that no worker took is dropped: the next tick sends another


def ask_due(now: datetime) -> None:
    """Have a worker ask about the offline accounts whose next try is due."""
    if _waiting(now).exists():
        app.send_task(TASK, expires=EXPIRES)


def probe_due() -> None:
    """Ask about the offline accounts whose next try is due, owners in turn, unless such a pass is under way."""
    with one_pass("probe") as free:
        if free:
            probe(_take_due(timezone.now()))


def probe(accounts: Sequence[Account]) -> None:
    """Ask all services at once, and apply each answer as it comes: a silent service delays no other account."""
    for account, answered in ask.answers(accounts, lambda _, transport: connect.state_of(transport)):
        if not isinstance(answered, ask.NoAnswerError):  # else it is asked again after the next wait
            _apply(account, answered)


def _apply(account: Account, answered: connect.Answered) -> None:
    """Apply one answer; an error here must not stop the other accounts."""
    try:
        account.refresh_from_db(fields=["status", "archived_at"])
        if account.status == Account.Status.OFFLINE and account.archived_at is None:
            connect.apply(account, answered)
    except Exception:
        log.exception("probe_failed", account=account.pk)


@transaction.atomic
def _take_due(now: datetime) -> list[Account]:
    """Return the accounts to ask now, and set their next try, so that two workers never ask the same account."""
    turn = Window(RowNumber(), partition_by="owner", order_by=F("held_until").asc())
    chosen = _waiting(now).annotate(turn=turn).order_by("turn", "held_until").values_list("pk", flat=True)
    free = _waiting(now).filter(pk__in=list(chosen[:MOST_AT_ONCE]))
    due = list(free.select_for_update(skip_locked=True, no_key=True).order_by("held_until"))
    for account in due:
        account.trouble_count += 1
        account.held_until = now + timedelta(seconds=_wait(account.trouble_count))
        account.save(update_fields=["trouble_count", "held_until"])
    return due


def _waiting(now: datetime) -> QuerySet[Account]:
    offline = Account.objects.filter(status=Account.Status.OFFLINE, archived_at=None, held_until__lte=now)
    return offline.exclude(trouble_kind="")


def _wait(streak: int) -> float:
    verdict = decide(
        Unreachable(reason=""), attempt=1, idempotent=False, rules=conf.retry_rules(), streak=streak
    )
    return verdict.hold or 0.0
