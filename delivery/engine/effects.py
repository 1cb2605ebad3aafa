"""Applies a verdict to the account: the one place for runs and for test sends (SPEC P6, P7).

A test send that finds the account locked or blocked has the same effect on it as a message of a run.
"""

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import assert_never

from accounts.models import Account
from delivery import lifecycle
from delivery.engine.permits import Permits
from delivery.engine.trouble import AccountTrouble
from delivery.limits.slow_down import SlowDown
from delivery.retry import Effect, Verdict
from delivery.sessions import first_contacts

HOLD_AT_LEAST = 1.0  # seconds, where a verdict holds the account and does not say for how long
WITHOUT_CONSEQUENCE = frozenset({Effect.NONE, Effect.CLEAR, Effect.COUNT})
STOPS_ACCOUNT = frozenset({Effect.OFFLINE, Effect.FLAG})


def steps(
    verdict: Verdict, trouble: AccountTrouble, permits: Mapping[str, Permits], *, action: str = ""
) -> Iterator[Callable[[], object]]:
    """Yield what a verdict does to the account, step by step; the caller runs each step before it asks for the next.

    Every step talks to the database or to Redis. While one of them is away, a caller can repeat a step by itself.
    `permits` has those of every action that is held; the gaps of `action` grow, if it is among them.
    """
    account = trouble.account
    if trouble.changed:
        yield trouble.keep
    match verdict.effect:
        case Effect.NONE | Effect.CLEAR | Effect.COUNT:
            return
        case Effect.SLOW_DOWN | Effect.HOLD:
            for each in tuple(permits.values()):  # a refill may add some meanwhile
                yield partial(each.hold, verdict.hold or HOLD_AT_LEAST)
            if verdict.effect is Effect.SLOW_DOWN and action in permits:
                yield _slow_down(trouble, permits[action])
        case Effect.OFFLINE:
            yield partial(
                lifecycle.stop_account, account, status=Account.Status.OFFLINE, reason=verdict.error
            )
        case Effect.FLAG:
            yield partial(
                lifecycle.stop_account, account, status=Account.Status.FLAGGED, reason=verdict.error
            )
        case Effect.FIRST_CONTACTS:
            yield partial(first_contacts.lock, account, at=datetime.now(UTC), until=None)
        case _:
            assert_never(verdict.effect)


def _slow_down(trouble: AccountTrouble, permits: Permits) -> Callable[[], None]:
    """Return the step that makes the gaps between messages of an action longer."""
    return partial(
        SlowDown(trouble.account, trouble.lease).slower,
        permits.action,
        gap=permits.usual_gap(),
        since=trouble.free_since,
        now=datetime.now(UTC),
    )
