"""Slows an account down after a rate-limit answer, and lets it recover step by step (SPEC P6, P7).

The pace is learned from what the service took and from how long it asks to wait: an account whose service allows a
message every 30 s soon sends at that pace. The pace is saved in the database first, since Redis may forget.
"""

from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import DateTimeField, F
from django.db.models.functions import Coalesce, Greatest, Least
from django.utils import timezone

from accounts.models import Account
from activity.models import Attempt
from activity.storable import storable
from delivery import live, pacing
from delivery.engine.lease import Lease

SLOWEST = 8.0  # times, by reports alone
REPORTS_COUNT_FOR = timedelta(minutes=15)
LOOKS_BACK = timedelta(hours=1)  # older messages say nothing about the present pace


def asked_by_report(account: Account, *, at: datetime, reason: str) -> None:
    """Slow an account down because of a report, as an answer to a message would; a shift that is under way ends soon.

    A report that is older than a usual wait says nothing about now: the account has slowed down or waited since.
    """
    now, wait = timezone.now(), timedelta(seconds=settings.RATE_LIMITED_SECONDS)
    if at < now - REPORTS_COUNT_FOR:
        return
    Account.objects.filter(pk=account.pk).update(
        slow_factor=Least(F("slow_factor") * settings.SLOW_DOWN_FACTOR, Greatest(F("slow_factor"), SLOWEST)),
        clean_sends=0,
        held_until=Greatest("held_until", now + wait),
        trouble_kind=Account.Trouble.RATE_LIMITED,
        trouble=storable(reason, 500),
        trouble_since=Coalesce("trouble_since", now, output_field=DateTimeField()),
        slowed_by_report_at=now,
    )
    live.account_changed(account.pk, account.owner_id)


class SlowDown:
    """The slow-down of the account that a pump serves."""

    def __init__(self, account: Account, lease: Lease) -> None:
        self.account = account
        self.lease = lease

    def slower(self, action: str, *, gap: float, since: datetime | None, now: datetime) -> None:
        """Make the gaps longer. `gap` is the usual gap; `since` is when the service took messages again."""
        until = self.account.held_until or now
        factor = pacing.slower(
            self.account.slow_factor,
            gap=gap,
            seen=self._seen(action, since, now, until),
            by=settings.SLOW_DOWN_FACTOR,
            longest=settings.SLOW_DOWN_LONGEST_GAP_SECONDS,
        )
        self._save(factor, clean=0)

    @property
    def slowed(self) -> bool:
        return self.account.slow_factor > 1

    def count_clean_sends(self, sends: int) -> None:
        """Count messages that went through without complaint; enough of them take one step back."""
        factor, clean = self.account.slow_factor, self.account.clean_sends + sends
        if clean >= settings.SLOW_DOWN_RECOVERY_SENDS:
            factor = pacing.recovered(
                factor, clean, by=settings.SLOW_DOWN_FACTOR, every=settings.SLOW_DOWN_RECOVERY_SENDS
            )
            clean = 0
        # Saved even below a full step: a slow account sends few messages in one shift.
        self._save(factor, clean=clean)

    def _seen(self, action: str, since: datetime | None, now: datetime, until: datetime) -> float | None:
        """Return the time between two messages that the service was seen to allow, in seconds."""
        if (until - now).total_seconds() > pacing.LEARNS_UP_TO:
            return None
        earliest = max(since or now - LOOKS_BACK, now - LOOKS_BACK)
        taken = Attempt.objects.filter(account=self.account, action=action, outcome=Attempt.Outcome.SENT)
        times = list(taken.filter(at__gte=earliest, at__lt=now).order_by("at").values_list("at", flat=True))
        # Before the first rate-limit answer the start of the service's count is unknown: count from the first message.
        began = earliest if since is not None and since >= earliest else next(iter(times), now)
        return pacing.allowed_gap(since=began.timestamp(), until=until.timestamp(), sent=len(times))

    def _save(self, factor: float, *, clean: int) -> None:
        """Save to the database first: while it does not answer, the caller tries the whole step again."""
        rows = Account.objects.filter(pk=self.account.pk, fence=self.lease.fence)
        rows.update(slow_factor=factor, clean_sends=clean)
        self.account.slow_factor, self.account.clean_sends = factor, clean
        live.account_changed(self.account.pk, self.account.owner_id)
