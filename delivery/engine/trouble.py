"""Stores why an account cannot send, makes it wait, then tests it with one message at a time (SPEC P7).

`retry.decide` says what an outcome means; this stores it in the account's row, so that the next pump continues where a
dead one stopped. After the wait the service is asked how the account is. Then one message at a time is sent, until one
arrives.
"""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import structlog
from django.conf import settings

from accounts.models import Account
from activity.storable import storable
from delivery import conf, live, notifications
from delivery.engine.clock_reading import database_clock
from delivery.engine.lease import Lease
from delivery.outcomes import (
    AccountBlocked,
    NotConnected,
    Outcome,
    RateLimited,
    Sent,
    ServerError,
    TryAgain,
    Unknown,
    Unreachable,
)
from delivery.retry import Effect, RetryRules, Verdict, backoff, decide
from delivery.sessions.follow import REASONS
from delivery.states import TargetStatus, TroubleKind
from delivery.transports.base import AccountState, Transport, UnansweredError

log = structlog.get_logger(__name__)

NO_RECIPIENT_CAUSED = (RateLimited, NotConnected, Unreachable, ServerError, Unknown)
TAKEN = decide(Sent(), attempt=1, idempotent=False, rules=RetryRules())  # as nearly always
HOLDS = frozenset({Effect.HOLD, Effect.SLOW_DOWN, Effect.OFFLINE})
FIELDS = ("trouble_kind", "trouble", "trouble_since", "trouble_kind_since", "trouble_count", "held_until")
ENDS_OFFLINE = frozenset({"", TroubleKind.UNREACHABLE, TroubleKind.NOT_CONNECTED})
# How long it may last says the service by itself, so asking it how the account is would only be one request more.
NOT_ASKED_ABOUT = frozenset({"", TroubleKind.RATE_LIMITED})


class AccountTrouble:
    """The trouble of the account that a pump serves."""

    def __init__(self, account: Account, lease: Lease) -> None:
        self.account = account
        self.lease = lease
        self.changed = False  # since it was last kept
        self.free_since = account.held_until  # when the service took messages again, before this trouble
        self._held_at: datetime | None = None
        self._asked_after: datetime | None = None
        self._reconnected = False

    @property
    def present(self) -> bool:
        return self.account.trouble_kind != ""

    def held_until(self) -> datetime | None:
        """Return the moment of the next try, while that is still to come."""
        until = self.account.held_until
        return until if self.present and until is not None and until > datetime.now(UTC) else None

    def judge(
        self,
        outcome: Outcome,
        *,
        attempt: int,
        idempotent: bool,
        began_at: datetime,
        answered: bool = True,
        shared: bool = False,
    ) -> Verdict:
        """Decide on an outcome, and remember what it says about the account; `keep` writes that down.

        What had begun before the account was held tells nothing new: of several messages that met the same trouble one
        is enough. Nor does a message that we refused ourselves, so that its service did not answer. `shared` says that
        other recipients met the same failure.
        """
        if isinstance(outcome, Sent) and not (self.present or self.account.trouble_count):
            return TAKEN
        now = datetime.now(UTC)
        known = self._held_at is not None and began_at < self._held_at
        if isinstance(outcome, NO_RECIPIENT_CAUSED) and not known:
            if self.account.trouble_count == 0:
                # A look from a page may have found trouble long ago: what counts here begins with this message.
                self.account.trouble_since = None
            self.account.trouble_count, self.changed = self.account.trouble_count + 1, True
        verdict = decide(
            outcome,
            attempt=attempt,
            idempotent=idempotent,
            rules=conf.retry_rules(),
            streak=max(1, self.account.trouble_count),
            lasted=0.0 if self._is_another(isinstance(outcome, RateLimited)) else self._lasted(now),
            shared=shared,
        )
        if verdict.effect in HOLDS:
            self._hold(verdict, now, known=known)
        elif verdict.effect in {Effect.CLEAR, Effect.FIRST_CONTACTS} and answered and not known:
            self._clear()
        slower_already = known and verdict.effect is Effect.SLOW_DOWN
        return replace(verdict, effect=Effect.HOLD) if slower_already else verdict

    def judge_upload(self, outcome: Outcome, *, attempt: int) -> Verdict:
        """Decide on a file that was not taken: where its target is not pending, its run has to pause."""
        now, rules = datetime.now(UTC), conf.retry_rules()
        if isinstance(outcome, TryAgain):  # no recipient is meant: a file of ours cannot be read
            again = TargetStatus.PENDING if attempt < rules.max_attempts else TargetStatus.FAILED
            return Verdict(target=again, retry_after=backoff(attempt, rules), error=outcome.reason)
        verdict = self.judge(outcome, attempt=attempt, idempotent=True, began_at=now)
        # A service that fails on it for so long, and says that it works, fails on the file.
        lasting = isinstance(outcome, ServerError) and self._lasted(now) >= rules.offline_after
        return replace(verdict, target=TargetStatus.FAILED) if lasting else verdict

    def keep(self) -> None:
        """Write the trouble down, unless another pump has the account by now."""
        values = {name: getattr(self.account, name) for name in FIELDS}
        if self._reconnected:
            values["reconnected_at"] = self.account.reconnected_at
        self.changed = False
        Account.objects.filter(pk=self.account.pk, fence=self.lease.fence).update(**values)
        live.account_changed(self.account.pk, self.account.owner_id)
        lasting = self._lasted(datetime.now(UTC)) >= conf.retry_rules().offline_after
        if lasting and self.account.trouble_kind not in ENDS_OFFLINE:
            notifications.account_in_trouble(self.account)

    async def ask(self, transport: Transport) -> Outcome | None:
        """Ask the service how the account is, once after each hold; return None where a message may try it out."""
        if self.account.trouble_kind in NOT_ASKED_ABOUT or self._asked_after == self.account.held_until:
            return None
        self._asked_after = self.account.held_until
        try:
            async with asyncio.timeout(settings.SEND_TIMEOUT_SECONDS):
                state = await transport.status()
        except TimeoutError:
            return Unreachable(reason=f"no answer within {settings.SEND_TIMEOUT_SECONDS:g} s")
        except UnansweredError:  # it could not be asked from here: a message will tell
            return None
        except Exception:  # a bug in a transport must not end the shift: a message will tell
            log.exception("status_failed", transport=transport.kind)
            return None
        return self._meaning(state, transport)

    def _meaning(self, state: AccountState, transport: Transport) -> Outcome | None:
        """Return what the state of the account means, as the outcome of a failed send."""
        if state is AccountState.WORKING:
            return None
        if state in {AccountState.BLOCKED, AccountState.PAIRING}:
            return AccountBlocked(reason=transport.why or REASONS[state])
        if state is AccountState.UNREACHABLE:
            return self._still_away(transport)
        if state is AccountState.STARTING:
            return NotConnected(reason=REASONS[state])
        known = self.account.trouble_kind == TroubleKind.NOT_CONNECTED
        return NotConnected(
            reason=transport.why or (self.account.trouble if known else REASONS[AccountState.STOPPED])
        )

    def _still_away(self, transport: Transport) -> Outcome:
        """Return what a failed question means: a service that is silent now no longer answers with errors."""
        reason = transport.why or self.account.trouble
        if transport.silent:
            return Unreachable(reason=reason)
        if self.account.trouble_kind == TroubleKind.IN_DOUBT:
            return Unknown(reason=reason)
        return ServerError(reason=reason, everybody=True)

    def _hold(self, verdict: Verdict, now: datetime, *, known: bool) -> None:
        if not known:
            self.free_since, self._held_at = self.account.held_until, now
        if self._is_another(verdict.trouble is TroubleKind.RATE_LIMITED):
            self.account.trouble_since = None
        # By the database's clock: that of this process may be off, and nobody would shorten the wait later.
        until = database_clock.now() + timedelta(seconds=verdict.hold or 0)
        self.account.held_until = max(until, self.account.held_until or until)
        if self.present and self.account.trouble_kind != verdict.trouble:
            self.account.trouble_kind_since = now  # the account is in trouble for longer, with other words
        self.account.trouble_kind = verdict.trouble or ""
        self.account.trouble = storable(verdict.error, 500)
        self.account.trouble_since = self.account.trouble_since or now
        self.changed = True

    def _clear(self) -> None:
        if self.present or self.account.trouble_count:
            if self.account.trouble_kind == TroubleKind.NOT_CONNECTED:
                self.account.reconnected_at, self._reconnected = datetime.now(UTC), True
            forget(self.account)
            self.changed = True

    def _is_another(self, rate_limited: bool) -> bool:
        """Decide whether new trouble is not the old one: a service that asks for fewer messages is there, and works."""
        return self.present and rate_limited != (self.account.trouble_kind == TroubleKind.RATE_LIMITED)

    def _lasted(self, now: datetime) -> float:
        since = self.account.trouble_since
        return (now - since).total_seconds() if since is not None else 0.0


def forget(account: Account) -> None:
    """Take the trouble off an account; the caller saves it."""
    account.trouble_kind, account.trouble = "", ""
    account.trouble_since, account.trouble_count = None, 0
