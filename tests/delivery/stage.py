"""Accounts of the real sandbox, reminders fired through them, and what the sandbox's own log says of it."""

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

from django.db.models import Count

from accounts.models import Account, Recipient
from delivery.engine import pump
from delivery.models import Run, RunTarget
from delivery.sentences.account_state import whys
from delivery.states import SETTLED_RUN, TargetStatus
from reminders.fire import fire
from sandbox.log import Line
from sandbox.process import SandboxProcess
from sandbox.witness import deliveries, read
from tests.factories import (
    COUNTERS,
    AccountFactory,
    LimitFactory,
    OperatorFactory,
    RecipientFactory,
    ReminderFactory,
)


class Stage:
    """One test's play with the sandbox."""

    def __init__(self, gateway: SandboxProcess) -> None:
        self.gateway = gateway
        self.owner = OperatorFactory.create()

    def account(
        self,
        *,
        idempotent: bool = True,
        per_minute: int = 60_000,
        limits: dict[str, Any] | None = None,
        **values: Any,
    ) -> Account:
        """An active account that nothing but its own limits holds back, and these hardly."""
        credentials = {
            "base_url": self.gateway.url,
            "account": f"stage-{uuid4().hex}",
            "token": "a-token-of-the-stage",
            "idempotent": "yes" if idempotent else "no",
        }
        account = AccountFactory.create(owner=self.owner, credentials=credentials, **values)
        LimitFactory.create(account=account, per_minute=per_minute, **limits or {})
        if not idempotent:
            self.behave(account, idempotent=False)
        return account

    def recipients(self, count: int) -> list[Recipient]:
        return RecipientFactory.create_batch(count, owner=self.owner)

    def fire(
        self, *accounts: Account, to: int | Iterable[Recipient] = 3, parts: int = 1, **reminder: Any
    ) -> Run:
        """A run of a reminder that may be sent at any hour, unless it says otherwise."""
        values = {"window_start_hour": 0, "window_end_hour": 24} | reminder
        made = ReminderFactory.create(
            owner=self.owner,
            accounts=accounts,
            recipients=self.recipients(to) if isinstance(to, int) else to,
            parts=parts,
            **values,
        )
        return fire(made)

    def behave(self, account: Account, **wishes: Any) -> None:
        self.gateway.behave(account.credentials["account"], **wishes)

    def received(self, account: Account) -> list[Line]:
        """Every message that the sandbox was sent by the account, delivered or not."""
        name = account.credentials["account"]
        return [
            line for line in read(self.gateway.log) if line["kind"] == "message" and line["account"] == name
        ]

    def delivered(self, *accounts: Account) -> list[Line]:
        """Every message of the accounts that reached somebody, in order of receipt."""
        names = {account.credentials["account"] for account in accounts}
        return [line for line in deliveries(self.gateway.log) if line["account"] in names]


def serve(run: Run, *accounts: Account, most: int = 20) -> Run:
    """Pump the accounts in turn, as wake-ups would, until the run is neither queued nor running."""
    for _ in range(most):
        for account in accounts:
            pump.pump(account.pk)
        run.refresh_from_db()
        if run.status != "running":
            return run
    raise AssertionError(f"{run} is still {run.status} after {most} pumps: {counted(run)}")


@contextmanager
def pumping(stage: Stage, account: Account, *, after: int) -> Iterator[None]:
    """A pump is at work in a thread of its own, and `after` messages have been received."""
    thread = threading.Thread(target=pump.pump, args=(account.pk,))
    thread.start()
    while thread.is_alive() and len(stage.received(account)) < after:
        thread.join(0.01)
    try:
        yield
    finally:
        thread.join()


def sentence_of(account: Account) -> str:
    """Return what every page says of the account now, without its clock."""
    account.refresh_from_db()
    return whys([account], now=datetime.now(UTC))[account.pk].sentence


def counted(run: Run) -> dict[str, int]:
    """The run's counters, those that are not 0."""
    run.refresh_from_db()
    return {name: getattr(run, name) for name in COUNTERS if getattr(run, name)}


def add_up(run: Run) -> None:
    """R3, and more than the database can check: each counter is the number of targets in that state."""
    run.refresh_from_db()
    states = RunTarget.objects.filter(run=run).values_list("status").annotate(Count("pk"))
    assert {name: getattr(run, name) for name in COUNTERS if getattr(run, name)} == dict(states)
    assert run.total == sum(count for _, count in states)
    assert run.returned == run.targets.filter(status="sent", returned_at__isnull=False).count()
    if run.status in SETTLED_RUN:
        assert (run.pending, run.sending) == (0, 0)


def becomes(run: Run, *statuses: TargetStatus) -> Run:
    """Pretend that the engine has brought the first pending targets this far, by the way that targets go."""
    run.refresh_from_db()
    pending = list(run.targets.filter(status=TargetStatus.PENDING).order_by("pk"))
    for target, status in zip(pending, statuses, strict=False):
        row = RunTarget.objects.filter(pk=target.pk)
        row.update(status=TargetStatus.SENDING, fence=0, claimed_at=datetime.now(UTC))
        row.update(status=status, claimed_at=None)
        setattr(run, status, getattr(run, status) + 1)
        run.pending -= 1
    run.save()
    return run


def status_of(run: Run) -> list[str]:
    return list(run.targets.order_by("pk").values_list("status", flat=True))


def only_target(run: Run) -> RunTarget:
    return run.targets.get()


def abandon(run: Run, account: Account, *, begun: bool, ago: timedelta = timedelta()) -> RunTarget:
    """Leave the run's first pending target as a pump that died would: claimed, or begun as well."""
    target = run.targets.filter(status=TargetStatus.PENDING, account=account).order_by("pk")[0]
    account.refresh_from_db()
    account.fence, account.wake_at = account.fence + 1, datetime.now(UTC)
    account.save(update_fields=["fence", "wake_at"])
    now = datetime.now(UTC) - ago
    RunTarget.objects.filter(pk=target.pk).update(
        status=TargetStatus.SENDING,
        fence=account.fence,
        claimed_at=now,
        begun_at=now if begun else None,
        attempts=target.attempts + begun,
    )
    run.refresh_from_db()
    run.pending, run.sending = run.pending - 1, run.sending + 1
    run.save(update_fields=["pending", "sending"])
    target.refresh_from_db()
    return target


def noon_zone() -> str:
    """A zone whose clock now reads 12 something: a window from 6 to 18 is open there."""
    ahead = 12 - datetime.now(UTC).hour
    return "Etc/GMT" if ahead == 0 else f"Etc/GMT{-ahead:+d}"
