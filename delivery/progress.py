"""Reads the present progress of a run: its numbers, its rate, and the reason where nothing is being sent."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

from django.utils import timezone

from accounts.models import Account
from activity.models import Attempt
from delivery import live
from delivery.models import Run, RunAccount
from delivery.sentences import account_state, run_summary
from delivery.sentences.account_sentence import AccountNow, Mood, Why, tell
from delivery.states import RunStatus

RATE_OVER = timedelta(seconds=60)
MOST_ACCOUNTS = 5  # accounts whose sentences a page shows

# The states that a reader has to know first.
URGENCY = {Mood.TROUBLE: 0, Mood.WAITING: 1, Mood.CALM: 2, Mood.SENDING: 3}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sender:
    """An account of the run and its present state."""

    account: Account
    why: Why


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """The numbers and sentences of an open run, for a page and for its JSON snapshot."""

    run: Run
    rate: float  # targets per minute
    finish_at: datetime | None
    senders: list[Sender]  # only of a running run; accounts in trouble first
    others: int  # senders that are not listed
    snapshot: dict[str, Any]
    returned: str = ""  # a sentence, if messages came back
    slowed: str = ""  # a sentence, while errors slow it down


def progress_of(run: Run) -> Progress:
    return progress_of_all([run])[0]


def progress_of_all(runs: Sequence[Run]) -> list[Progress]:
    """Return the progress of each run; the accounts of all runs are read together."""
    senders = senders_of(runs)
    return [_progress(run, senders[run.pk]) for run in runs]


def senders_of(runs: Sequence[Run]) -> dict[int, list[Sender]]:
    """Return the accounts that each running run still uses, with their sentences, those in trouble first."""
    accounts = _accounts([run.pk for run in runs if run.status == RunStatus.RUNNING])
    now, every = timezone.now(), {account.pk: account for each in accounts.values() for account in each}
    states = account_state.states(list(every.values()), now=now) if every else {}
    return {run.pk: _told(accounts.get(run.pk, []), states, now, ZoneInfo(run.zone)) for run in runs}


def _progress(run: Run, senders: list[Sender]) -> Progress:
    rate = rate_now(run, [sender.account.pk for sender in senders]) if senders else 0.0
    snapshot = live.snapshot(run, rate)
    finish = snapshot["finish_at"]
    return Progress(
        run=run,
        rate=rate,
        finish_at=datetime.fromisoformat(finish) if finish else None,
        senders=senders[:MOST_ACCOUNTS],
        others=len(senders[MOST_ACCOUNTS:]),
        snapshot=snapshot,
        returned=run_summary.returned(run),
        slowed=run_summary.slowed(run),
    )


def rate_now(run: Run, accounts: list[int]) -> float:
    """Return the targets per minute over the last minute, counted by the last part of each.

    Soon after the start of the run the rate is over the time since then.
    """
    now = timezone.now()
    since = max(now - RATE_OVER, run.started_at or now)
    last_part = max(0, len(run.parts) - 1)
    done = Attempt.objects.filter(account__in=accounts, action=run.action, at__gte=since)
    count = done.filter(run=run, part=last_part, outcome=Attempt.Outcome.SENT).count()
    minutes = max((now - since).total_seconds(), 1.0) / 60
    return count / minutes


def _accounts(runs: list[int]) -> dict[int, list[Account]]:
    """Return the accounts by run, in one query."""
    if not runs:
        return {}
    shares = RunAccount.objects.filter(run__in=runs, open=True).select_related("account")
    found: dict[int, list[Account]] = {}
    for share in shares.defer("account__credentials", "account__webhook").order_by("account__name"):
        found.setdefault(share.run_id, []).append(share.account)
    return found


def _told(
    accounts: Sequence[Account], states: Mapping[int, AccountNow], now: datetime, zone: tzinfo
) -> list[Sender]:
    found = [Sender(account=each, why=tell(states[each.pk], now=now, zone=zone)) for each in accounts]
    return sorted(found, key=lambda sender: (URGENCY[sender.why.mood], sender.account.name))
