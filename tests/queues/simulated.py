"""Sends the items of accounts by a moved clock, so that two weeks pass in seconds.

Every decision is the engine's own: which run is next, what the limiter in Redis grants at that time, which target is
claimed, whether the message may begin, and what is recorded in the ledger. Mails go to a real mail server.
Only the waiting is left out: the clock moves to the moment that the engine names.
"""

import heapq
import random
import smtplib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.message import EmailMessage
from typing import Any

import time_machine
from aiosmtpd.controller import Controller
from django.db.models import F

from accounts.models import Account
from config.redis.client import client
from delivery import pacing
from delivery.engine import claims, lease, recording
from delivery.engine.next_run import Turn, next_turn
from delivery.engine.rebuild import Hand, Spans, memory
from delivery.engine.recording import Intent, Landing, Ledgered
from delivery.engine.sql import run as run_query
from delivery.engine.tick import tick
from delivery.items import contents_of
from delivery.limiter import Ask, Done, Forgotten, Granted, Limiter, Unit, Wait
from delivery.limits.lookup import day_of, effective_limits
from delivery.models import Run
from delivery.states import TargetStatus
from queues.keep_times import keep_times
from tests.delivery.transports.harness import port_without_server

FAR = timedelta(days=90)  # how far the moved clock may be ahead of the database's
LEASE_MS = 140_000
SECOND = timedelta(seconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """A mail as the server took it, and when."""

    at: datetime
    sender: str
    subject: str


class Inbox:
    """A mail server that takes everything, and notes when, by the moved clock."""

    def __init__(self) -> None:
        self.mails: list[Received] = []

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:  # noqa: N802 - aiosmtpd's name
        subject = next(
            line[9:] for line in envelope.content.decode().splitlines() if line.startswith("Subject: ")
        )
        self.mails.append(
            Received(at=datetime.now(UTC), sender=str(envelope.mail_from), subject=subject.strip())
        )
        return "250 OK"

    def of(self, account: Account) -> list[Received]:
        return [mail for mail in self.mails if mail.sender == address_of(account.pk)]


def address_of(account_id: int) -> str:
    return f"account-{account_id}@school.example"


@contextmanager
def mail_server() -> Iterator[tuple[Inbox, int]]:
    inbox = Inbox()
    with port_without_server() as port:
        pass
    server = Controller(inbox, hostname="127.0.0.1", port=port)
    server.start()
    try:
        yield inbox, port
    finally:
        server.stop()


@dataclass(slots=True, kw_only=True)
class Simulation:
    """Some accounts, a clock that is moved, and the mail server that they send to."""

    accounts: Sequence[Account]
    clock: time_machine.Traveller
    port: int
    rng: random.Random = field(default_factory=lambda: random.Random(7))
    marks: dict[int, str] = field(default_factory=dict)
    leases: dict[int, lease.Lease] = field(default_factory=dict)
    settled: dict[int, dict[str, int]] = field(default_factory=dict)
    planned_on: object = None

    def run(self, *, until: datetime, most: int = 10_000) -> None:
        """Let the accounts send until nothing is left to do, or until this time."""
        now = datetime.now(UTC)
        agenda = [(now, number) for number in range(len(self.accounts))]
        for _ in range(most):
            if not agenda or agenda[0][0] > until:
                return
            at, number = heapq.heappop(agenda)
            self._move_to(at)
            again = self._step(self.accounts[number])
            if again is not None:
                heapq.heappush(agenda, (again, number))
        raise AssertionError("There is always more to do.")

    def restart(self) -> None:
        """Forget all that workers and Redis know, as after an outage: only the database is left."""
        client().flushdb()
        self.marks.clear()
        self.leases.clear()
        self.settled.clear()

    def _move_to(self, at: datetime) -> None:
        """Move the clock, never back, and do what beat does: windows each time, planned times once a day."""
        now = max(at, datetime.now(UTC))
        self.clock.move_to(now, tick=False)
        tick()
        if now.date() != self.planned_on:
            self.planned_on = now.date()
            keep_times(now=now)

    def _step(self, account: Account) -> datetime | None:
        """Send one message of an account if it is due; return when to look again, None where nothing is left."""
        account.refresh_from_db()
        now = datetime.now(UTC)
        turn = next_turn(account, now=now, busy=False)
        if not isinstance(turn, Turn):
            return self._next_moment(account, turn.until, now)
        unit = self._permit(account, turn.run.action)
        if isinstance(unit, datetime):
            return self._next_moment(account, max(unit, now + SECOND), now)
        self._move_to(datetime.fromtimestamp(unit.at_ms / 1000, UTC))
        self._send(account, turn, unit)
        return datetime.now(UTC) + SECOND

    def _next_moment(self, account: Account, until: datetime | None, now: datetime) -> datetime | None:
        """Return the earliest of what the engine named and of the windows of the account's runs."""
        runs = Run.objects.open().filter(run_accounts__account=account, run_accounts__open=True)
        moments = [until, *(at for times in runs.values_list("opens_at", "closes_at") for at in times)]
        return min((at for at in moments if at is not None and at > now), default=None)

    def _lease(self, account: Account) -> lease.Lease:
        if account.pk not in self.leases:
            taken = lease.acquire(
                client(), account.pk, ttl_ms=LEASE_MS, next_fence=lambda: _next_fence(account)
            )
            assert taken is not None
            self.leases[account.pk] = taken
        return self.leases[account.pk]

    def _permit(self, account: Account, action: str) -> Unit | datetime:
        """Return a permit of the limiter, or until when it wants the account to wait."""
        limits, held = effective_limits(account, action), self._lease(account)
        pace, now = pacing.pace_of(limits), datetime.now(UTC)
        limiter = Limiter(client(), lease_ttl_ms=LEASE_MS, now_ms=_now_ms)
        gap = pacing.gaps_ms(limits, cost=1, count=1, stretch=1, rng=self.rng)
        for _ in range(3):
            answer = limiter.take(
                Ask(
                    lease=held,
                    action=action,
                    pace=pace,
                    day=day_of(account, now),
                    want=1,
                    cost=1,
                    gaps_ms=gap,
                    settled=self.settled.pop(account.pk, {}),
                    mark=self.marks.get(account.pk, ""),
                )
            )
            match answer:
                case Granted(units=units, mark=mark):
                    self.marks[account.pk] = mark
                    return units[0]
                case Wait(until_ms=until_ms, mark=mark):
                    self.marks[account.pk] = mark
                    return datetime.fromtimestamp(until_ms / 1000, UTC)
                case Forgotten():
                    spans = Spans(now_ms=_now_ms(), reach_ms=limiter.reach_ms(pace), gap_ms=gap[0])
                    known = memory(
                        account,
                        action,
                        pace=pace,
                        day=day_of(account, now),
                        spans=spans,
                        hand=Hand(fence=held.fence),
                    )
                    done = limiter.rebuild(held, action, known)
                    assert isinstance(done, Done)
                    self.marks[account.pk] = done.mark
        raise AssertionError(f"The limiter answers {answer}.")

    def _send(self, account: Account, turn: Turn, unit: Unit) -> None:
        held, now = self._lease(account), datetime.now(UTC)
        (claimed,) = claims.claim(
            turn.run.run_id, account.pk, fence=held.fence, most=1, now=now, planned=turn.planned
        )
        intent = Intent(
            target_id=claimed.target_id,
            part=0,
            fence=held.fence,
            wished_at=now,
            account_id=account.pk,
            claimed_at=claimed.claimed_at,
        )
        guard = timedelta(seconds=1)
        (leave,) = run_query(recording.begin([intent], now=now, guard=guard, tolerance=FAR))
        assert leave is not None, f"{account} may not begin at {now}"
        self._mail(account, claimed.address, contents_of([claimed.target_id])[claimed.target_id].subject)
        landing = Landing(
            whose=Ledgered(
                run_id=turn.run.run_id,
                owner_id=account.owner_id,
                account_id=account.pk,
                action=turn.run.action,
            ),
            fence=held.fence,
            target_id=claimed.target_id,
            part=0,
            attempt=1,
            began_at=now,
            took_ms=1,
            outcome="sent",
            provider_id=f"mail-{claimed.target_id}",
            error="",
            status=TargetStatus.SENT,
            parts_done=1,
            not_before=None,
        )
        assert run_query(recording.record([landing], now=now))
        self.settled.setdefault(account.pk, {})[unit.permits[0]] = _now_ms()

    def _mail(self, account: Account, address: str, subject: str) -> None:
        mail = EmailMessage()
        mail["Subject"], mail["To"] = subject, address
        mail.set_content("Hello")
        with smtplib.SMTP("127.0.0.1", self.port) as server:
            server.send_message(mail, from_addr=address_of(account.pk))


def _now_ms() -> int:
    return int(datetime.now(UTC).timestamp() * 1000)


def _next_fence(account: Account) -> int:
    Account.objects.filter(pk=account.pk).update(fence=F("fence") + 1)
    return int(Account.objects.values_list("fence", flat=True).get(pk=account.pk))


def next_monday(zone: Any, hour: int) -> datetime:
    """Return the Monday after next week's begin, at this hour: later than now by the database's clock."""
    soon = datetime.now(zone) + timedelta(days=2)
    return (soon + timedelta(days=(7 - soon.weekday()) % 7)).replace(
        hour=hour, minute=0, second=0, microsecond=0
    )
