"""Handles locks on first contacts: a service stops messages to people an account never wrote to (WhatsApp's "463").

A lock without an end is guessed to last a day, and the service is asked for its end (`own_limits.py`), which replaces
the guess. That a service tells of no lock lifts none: some lock without telling.

Known chats continue. Only first contacts wait: their `not_before` moves behind the lock wherever they are pending,
and a run that starts or continues under a lock does the same. A pump may have claimed others a minute ahead: BEGIN
refuses them (`engine/recording.py`), and as they are given back they wait, too (`engine/claims.py`).
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db import connection, transaction
from django.utils import timezone

from accounts.models import Account, Role, User
from accounts.roles import require_touch
from audit.record import record
from delivery import live, notifications
from delivery.engine import wakeups
from delivery.engine.claims import KNOWN

READ_OWN_LIMITS = "delivery.read_own_limits"
USUAL = timedelta(hours=24)  # used until the service says how long
LONGEST = timedelta(
    days=3660
)  # an end beyond means "for good"; the last years of the calendar exist not in all zones

HOLD = f"""
UPDATE delivery_runtarget held SET not_before = a.first_contacts_until
FROM delivery_runtarget t
JOIN accounts_account a ON a.id = t.account_id
JOIN accounts_recipient p ON p.id = t.recipient_id
JOIN delivery_run r ON r.id = t.run_id
WHERE held.id = t.id AND t.status = 'pending' AND a.first_contacts_until > %(now)s
  AND t.not_before < a.first_contacts_until AND r.status IN ('queued', 'running', 'paused')
  AND NOT {KNOWN}
"""  # noqa: S608 - made of constants
OF_RUNS = "AND t.run_id = ANY(%(runs)s)"
OF_ACCOUNT = """
AND t.account_id = %(account)s
AND t.run_id IN (SELECT run_id FROM delivery_runaccount WHERE account_id = %(account)s AND open)
"""
RELEASE = """
UPDATE delivery_runtarget SET not_before = %(now)s
WHERE status = 'pending' AND account_id = %(account)s AND not_before = %(until)s
  AND run_id IN (SELECT share.run_id FROM delivery_runaccount share JOIN delivery_run r ON r.id = share.run_id
                 WHERE share.account_id = %(account)s AND share.open AND NOT r.on_time_first)
"""
MOVE_END = RELEASE.replace("SET not_before = %(now)s", "SET not_before = %(end)s")


@transaction.atomic
def lock(account: Account, *, at: datetime, until: datetime | None) -> None:
    """Record that the service locked first contacts; notify the owner once per lock.

    An end that the service says replaces a guessed one, also with an earlier end; a guess changes no lock that holds.
    """
    guessed, now = until is None, timezone.now()
    until = foreseeable(until or at + USUAL, now=now)
    account = Account.objects.select_for_update(no_key=True).get(pk=account.pk)
    if until <= now:
        return
    before = account.first_contacts_until if (account.first_contacts_until or now) > now else None
    if before and (guessed or (before >= until and not account.first_contacts_guessed)):
        _execute(HOLD + OF_ACCOUNT, account=account.pk)  # targets that were being sent when that lock came
        return
    if before and before > until:
        _execute(MOVE_END, account=account.pk, until=before, end=until)
    account.first_contacts_until, account.first_contacts_guessed = until, guessed
    account.save(update_fields=["first_contacts_until", "first_contacts_guessed"])
    _execute(HOLD + OF_ACCOUNT, account=account.pk)
    _announce(account)
    if guessed:
        wakeups.send_on_commit(READ_OWN_LIMITS, account.pk)
    else:
        wakeups.wake_on_commit([account.pk])
    if before is None:
        notifications.first_contacts_locked(account)


def foreseeable(until: datetime, *, now: datetime) -> datetime:
    """Return an end that a service said, some years from now at the latest."""
    return min(until, now + LONGEST)


@transaction.atomic
def unlock(account: Account, *, by: User) -> None:
    """End the lock, because a person says that first contacts work again: those that waited may leave now."""
    require_touch(account, by, Role.MANAGE)
    account = Account.objects.select_for_update(no_key=True).get(pk=account.pk)
    if account.first_contacts_until is None:
        return
    record("account.unlocked", account, by=by, before={"until": account.first_contacts_until})
    _execute(RELEASE, account=account.pk, until=account.first_contacts_until)
    account.first_contacts_until, account.first_contacts_guessed = None, False
    account.save(update_fields=["first_contacts_until", "first_contacts_guessed"])
    wakeups.wake_on_commit([account.pk])
    _announce(account)


def hold(run_ids: Sequence[int]) -> None:
    """Let the first contacts of runs wait for the locks of their accounts."""
    locked = Account.objects.filter(run_accounts__run__in=run_ids, first_contacts_until__gt=timezone.now())
    if locked.exists():
        _execute(HOLD + OF_RUNS, runs=list(run_ids))


def _execute(statement: str, **arguments: Any) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement, {"now": timezone.now(), **arguments})


def _announce(account: Account) -> None:
    account_id, owner_id = account.pk, account.owner_id
    transaction.on_commit(lambda: live.account_changed(account_id, owner_id))
