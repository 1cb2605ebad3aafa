"""Test sends that were asked for, and the result of each.

They are kept in Redis for an hour: no run counts them and nothing depends on them but the page that waits for its
answer. What they used of the account's limits is in the ledger, as for every message; that a test leaves only once
and under its caps is up to PostgreSQL (`accounts/own_addresses.py`).
"""

import hashlib
import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from config.redis.client import client

KEPT_SECONDS = 3600
TWICE_SECONDS = 5  # within which the same test again is a double click


class TrialState(StrEnum):
    """The progress of a test."""

    WAITING = "waiting"  # for its account's turn, or for a permit
    SENT = "sent"  # the service took every part
    FAILED = "failed"  # it was not sent, or not all of it
    UNKNOWN = "unknown"  # it may have arrived


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One message to oneself: its parts, its account, its address and the values to fill in.

    The `kind` is "test", or "code" for the message that confirms an address: its text is made when it leaves.
    """

    account_id: int
    person_id: int
    kind: str = "test"
    message_id: int = 0  # of its `TestMessage`, once it has a place under the caps
    reminder_id: int
    address: str
    action: str
    subject: str
    parts: Sequence[Mapping[str, Any]]
    values: Mapping[str, Any]
    id: str = field(default_factory=lambda: secrets.token_urlsafe(12))
    asked_at: float = field(default_factory=lambda: datetime.now(UTC).timestamp())
    state: TrialState = TrialState.WAITING
    sentence: str = "Waiting for the account's turn."
    ended_at: float | None = None

    @property
    def messages(self) -> int:
        """Return how many messages the test has; the text of a code is written when it leaves."""
        return len(self.parts) or 1

    @property
    def over(self) -> bool:
        return self.state is not TrialState.WAITING


def keep(trial: Trial) -> Trial:
    client().set(_key(trial.id), json.dumps(asdict(trial)), ex=KEPT_SECONDS)
    return trial


def keep_once(trial: Trial) -> Trial:
    """Keep the trial and return it; return the earlier one if the same was asked a moment ago and may arrive."""
    keep(trial)  # first, so that whoever comes second finds it
    who = (trial.kind, trial.person_id, trial.account_id, trial.reminder_id)
    said = (*who, trial.address, trial.action, trial.subject)
    content = json.dumps([*said, list(trial.parts), dict(trial.values)], sort_keys=True)
    alike = f"paceline:trial-alike:{hashlib.sha256(content.encode()).hexdigest()}"
    if client().set(alike, json.dumps(trial.id), nx=True, ex=TWICE_SECONDS):
        return trial
    stored = client().get(alike)
    earlier = find(json.loads(stored)) if stored else None
    if earlier is not None and earlier.state is not TrialState.FAILED:
        return earlier
    client().set(alike, json.dumps(trial.id), ex=TWICE_SECONDS)
    return trial


def find(trial_id: str) -> Trial | None:
    """Return the trial; None once it is forgotten, or was never there."""
    stored = client().get(_key(trial_id))
    if stored is None:
        return None
    values = json.loads(stored)
    return Trial(**values | {"state": TrialState(values["state"])})


def settle(trial: Trial, state: TrialState, sentence: str) -> Trial:
    now = datetime.now(UTC).timestamp()
    return keep(replace(trial, state=state, sentence=sentence, ended_at=now))


def _key(trial_id: str) -> str:
    return f"paceline:trial:{trial_id}"
