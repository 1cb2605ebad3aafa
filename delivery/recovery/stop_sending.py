"""Stops all sending, of the installation or of one owner, and starts it again.

A stop is a row in the database. The statement that begins a message (`engine/recording.BEGIN`) checks for it, so that
nothing leaves once the stop is committed; the stop outlives restarts. `SENDING=off` in the environment of a worker
does the same before the worker has asked the database for anything, and writes a row as well.
"""

from dataclasses import dataclass
from datetime import datetime

import structlog
from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.db import DatabaseError, connection, transaction
from django.db.models import F, Q, QuerySet
from django.utils import timezone

from accounts.models import Account, Role, SendingStop, TeamMate, User
from accounts.roles import owners_for
from audit.record import record
from delivery.states import WaitReason

log = structlog.get_logger(__name__)

OFF_HERE = "SENDING=off in the environment of a worker"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """The reason why nothing leaves: whose sending is stopped, since when, by whom and why."""

    everybody: bool
    owner: str
    since: datetime | None
    by: str
    reason: str

    def sentence(self) -> str:
        whose = "All sending is stopped" if self.everybody else f"All sending of {self.owner} is stopped"
        by = f" by {self.by}" if self.by else ""
        reason = f": {self.reason.rstrip('.')}" if self.reason else ""
        return f"{whose}{by}{reason}. Nothing is sent until somebody starts it again."


def stop_of(owner_id: int) -> Stop | None:
    """Return the stop that holds this owner's messages, if there is one."""
    if not settings.SENDING:
        return Stop(everybody=True, owner="", since=None, by="", reason=OFF_HERE)
    found = list(_open().filter(Q(owner=None) | Q(owner_id=owner_id))[:1])
    return _as_stop(found[0]) if found else None


def stops_seen_by(user: User) -> list[Stop]:
    """Return the stops to show to a person: the one for everybody, and those of owners whose data the person sees."""
    found = _open()
    if not user.is_staff:
        shared = TeamMate.objects.filter(mate=user).values("owner")
        found = found.filter(Q(owner=None) | Q(owner=user) | Q(owner__in=shared))
    return [_as_stop(row) for row in found[:5]]


def _open() -> QuerySet[SendingStop]:
    """Return the open stops; the one for everybody comes first."""
    rows = SendingStop.objects.filter(ended_at=None).select_related("owner", "stopped_by")
    return rows.order_by(F("owner").desc(nulls_first=True), "id")


def _as_stop(row: SendingStop) -> Stop:
    return Stop(
        everybody=row.owner_id is None,
        owner=str(row.owner or ""),
        since=row.stopped_at,
        by=str(row.stopped_by or ""),
        reason=row.reason,
    )


def stop(owner: User | None, *, reason: str = "", by: User | None = None) -> bool:
    """Stop the sending of `owner` or of everybody; return False if it was stopped already."""
    _require(owner, by)
    with transaction.atomic():
        row, made = SendingStop.objects.get_or_create(
            owner=owner, ended_at=None, defaults={"reason": reason[:200], "stopped_by": by}
        )
        if made:
            record("sending.stopped", owner, by=by, note=reason)
        _look_again(row.owner_id)
    if made:
        log.warning("sending_stopped", owner=str(owner or "everybody"), by=str(by or ""), reason=reason)
    return made


class UndecidedError(PermissionDenied):
    """Sending cannot be started yet: a restore left messages of which nobody has said whether they were sent."""


def start(owner: User | None, *, by: User | None = None) -> bool:
    """Start sending again; return False if nothing was stopped. Raise UndecidedError after a restore."""
    _require(owner, by)
    with transaction.atomic():
        _require_decided(owner)
        ended = SendingStop.objects.filter(owner=owner, ended_at=None).update(
            ended_at=timezone.now(), ended_by=by
        )
        if ended:
            record("sending.started", owner, by=by)
        _look_again(owner.pk if owner else None)
        accounts = Account.objects.filter(waiting_for=WaitReason.SENDING_STOPPED)
        # The next shift updates the wait reason only at its end.
        (accounts.filter(owner=owner) if owner else accounts).update(waiting_for="", waiting_until=None)
    if ended:
        log.warning("sending_started", owner=str(owner or "everybody"), by=str(by or ""))
    return bool(ended)


def _require_decided(owner: User | None) -> None:
    rows = SendingStop.objects.filter(owner=owner, ended_at=None, restored_to__isnull=False)
    if restored := rows.first():
        raise UndecidedError(
            f"This installation was restored to {restored.restored_to:%Y-%m-%d %H:%M:%S} UTC. Messages may have been "
            "sent since then, and would be sent again. Decide first: `manage.py after_restore --apply` marks them as "
            "unconfirmed, `manage.py after_restore --nothing-was-sent` lets all of them be sent."
        )


def restored(at: datetime) -> None:
    """Record that the database was restored to a moment: all sending is stopped until somebody has decided."""
    reason = f"Restored from a backup of {at:%Y-%m-%d %H:%M} UTC"
    row, made = SendingStop.objects.get_or_create(
        owner=None, ended_at=None, defaults={"reason": reason, "restored_to": at}
    )
    if not made:
        row.restored_to = at
        row.save(update_fields=["restored_to"])


def decided() -> None:
    """Record that a person has decided: sending may be started."""
    SendingStop.objects.filter(owner=None, ended_at=None).update(restored_to=None)


def waits_for_decision() -> SendingStop | None:
    """Return the stop of a restore after which nobody has decided yet."""
    return SendingStop.objects.filter(owner=None, ended_at=None, restored_to__isnull=False).first()


def may_stop(owner: User | None, user: User) -> bool:
    """Return whether a person may stop this: staff stop everybody; an owner and their team stop the owner's sending."""
    if owner is None:
        return user.is_staff
    return owners_for(user, Role.SEND).filter(pk=owner.pk).exists()


def _require(owner: User | None, by: User | None) -> None:
    if by is not None and not may_stop(owner, by):
        whose = "everybody" if owner is None else str(owner)
        raise PermissionDenied(f"You may not stop or start the sending of {whose}. Ask a staff member.")


def _look_again(owner_id: int | None) -> None:
    """Wake every account with work at once, so that each shows its wait reason, or continues."""
    with connection.cursor() as cursor:
        cursor.execute(
            """
            UPDATE accounts_account SET wake_at = %(now)s WHERE id IN (
                SELECT id FROM accounts_account
                WHERE wake_at IS NOT NULL AND owner_id = COALESCE(%(owner)s, owner_id) ORDER BY id FOR NO KEY UPDATE
            )
            """,
            {"now": timezone.now(), "owner": owner_id},
        )


def stop_if_off() -> None:
    """Write the stop of a worker that was started with SENDING=off, so that pages and other workers see it too."""
    if settings.SENDING:
        return
    try:
        stop(None, reason=OFF_HERE)
    except DatabaseError:
        log.warning("stop_not_recorded", exc_info=True)  # SENDING=off still holds in this worker
    finally:
        connection.close()
