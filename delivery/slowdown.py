"""How an account slows down after a rate-limit answer, and recovers step by step (SPEC P6, P7).

In the database first, since Redis may forget.
"""

from datetime import UTC, datetime, timedelta

from django.conf import settings

from accounts.models import Account
from delivery import events, pacing
from delivery.lease import Lease


class SlowDown:
    """The slow-down of the account that a pump serves."""

    def __init__(self, account: Account, lease: Lease) -> None:
        self.account = account
        self.lease = lease

    def hold(self, seconds: float, *, slower: bool) -> None:
        """Nothing of this account leaves for a while; and, if `slower`, what follows has longer gaps."""
        until = datetime.now(UTC) + timedelta(seconds=seconds)
        self.account.held_until = max(until, self.account.held_until or until)
        if slower:
            self.account.slow_factor = pacing.slower(
                self.account.slow_factor, by=settings.SLOW_DOWN_FACTOR, ceiling=settings.SLOW_DOWN_CEILING
            )
            self.account.clean_sends = 0
        self._save()

    @property
    def slowed(self) -> bool:
        return self.account.slow_factor > 1

    def count_clean_sends(self, sends: int) -> None:
        """Messages went through without complaint; enough of them take one step back."""
        self.account.clean_sends += sends
        if self.account.clean_sends >= settings.SLOW_DOWN_RECOVERY_SENDS:
            self.account.slow_factor = pacing.recovered(
                self.account.slow_factor,
                self.account.clean_sends,
                by=settings.SLOW_DOWN_FACTOR,
                every=settings.SLOW_DOWN_RECOVERY_SENDS,
            )
            self.account.clean_sends = 0
        # Also what is short of a step: a slow account sends few messages in one shift.
        self._save()

    def _save(self) -> None:
        Account.objects.filter(pk=self.account.pk, fence=self.lease.fence).update(
            slow_factor=self.account.slow_factor,
            clean_sends=self.account.clean_sends,
            held_until=self.account.held_until,
        )
        events.account_changed(self.account.pk, self.account.owner_id)
