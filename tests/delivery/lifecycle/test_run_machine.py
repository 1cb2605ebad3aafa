"""R3, R7 and R8 over random lives of runs: whatever happens, in whatever order, the counts add up, nothing
arrives twice, nobody is forgotten, and all comes to an end."""

from collections import Counter
from datetime import timedelta
from typing import Any, ClassVar

import pytest
from django.utils import timezone
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from pytest_django import Settings

from accounts.models import Account, Recipient
from activity.models import Attempt
from config.redis.client import client
from delivery import lifecycle
from delivery.engine import pump
from delivery.engine.lease import lease_key
from delivery.engine.loop import send_loop
from delivery.engine.tick import tick
from delivery.lifecycle import WrongStateError
from delivery.models import Run, RunTarget
from delivery.states import SETTLED_RUN, AccountStatus, PauseReason, RunStatus, TargetStatus
from delivery.transports.base import Message
from tests.delivery.stage import Stage, abandon, add_up, pumping

LONG_AGO = timedelta(minutes=5)
TROUBLE: dict[str, Any] = {
    "error_rate": 0.0,
    "error_rate_after": 0.0,
    "cut": 0.0,
    "garbage": 0.0,
    "not_connected": False,
    "reject": [],
}
MOVES = ["pause", "resume", "cancel", "retry_failed", "archive"]
STOPS = [AccountStatus.OFFLINE, AccountStatus.FLAGGED, AccountStatus.PAUSED]


class Life(RuleBasedStateMachine):
    """Two accounts, up to three runs."""

    stage: ClassVar[Stage]

    @initialize(idempotent=st.booleans())
    def begin(self, idempotent: bool) -> None:
        self.idempotent = idempotent
        self.accounts = [self.stage.account(idempotent=idempotent) for _ in range(2)]
        self.runs: list[Run] = []
        self.sent_again: set[str] = set()
        self.out: dict[str, int] = {}  # who must not be written to any more, and how often they were before

    # What people do.

    @precondition(lambda self: len(self.runs) < 3)
    @rule(to=st.integers(1, 5), parts=st.integers(1, 3), shared=st.booleans())
    def fire(self, to: int, parts: int, shared: bool) -> None:
        senders = self.accounts if shared else self.accounts[:1]
        self.runs.append(self.stage.fire(*senders, to=to, parts=parts))

    @rule(data=st.data(), move=st.sampled_from(MOVES))
    def steer(self, data: st.DataObject, move: str) -> None:
        run = self._one_of(data)
        try:
            if move == "pause":
                lifecycle.pause(run, reason=PauseReason.OPERATOR)
            else:
                getattr(lifecycle, move)(run)
        except WrongStateError:
            return

    @rule(data=st.data(), again=st.booleans())
    def decide(self, data: st.DataObject, again: bool) -> None:
        target = self._one_of(data).targets.filter(status=TargetStatus.UNCONFIRMED).first()
        if target is None:
            return
        try:
            if again:
                lifecycle.resend(target)
                self.sent_again.add(target.key)
            else:
                lifecycle.confirm(target)
        except WrongStateError:
            return

    @rule(data=st.data())
    def opt_out(self, data: st.DataObject) -> None:
        target = self._one_of(data).targets.filter(status=TargetStatus.PENDING).last()
        if target is not None:
            Recipient.objects.filter(pk=target.recipient_id).update(opted_out_at=timezone.now())
            self._out(target)

    @rule(data=st.data())
    def withdraw(self, data: st.DataObject) -> None:
        target = self._one_of(data).targets.exclude(status=TargetStatus.SENT).first()
        if target is not None and lifecycle.withdraw(
            target.recipient_id, kind=Run.Kind.REMINDER, why="they replied"
        ):
            self._out(target)

    @rule(status=st.sampled_from(STOPS), which=st.integers(0, 1))
    def account_stops(self, status: AccountStatus, which: int) -> None:
        lifecycle.stop_account(self.accounts[which], status=status, reason="it just did")

    @rule(which=st.integers(0, 1))
    def account_comes_back(self, which: int) -> None:
        lifecycle.start_account(self.accounts[which])

    # What time and machines do.

    @rule(trouble=st.sampled_from(["", *TROUBLE]), rate=st.sampled_from([0.3, 1.0]), which=st.integers(0, 1))
    def pump(self, trouble: str, rate: float, which: int) -> None:
        account = self.accounts[which]
        self._behave(account, trouble, rate)
        before = len(self.stage.received(account))
        may_send = self._may_send(account)
        pump.pump(account.pk)
        assert may_send or len(self.stage.received(account)) == before

    @rule(which=st.integers(0, 1), all_of_it=st.booleans())
    def two_pumps_in_one_process(self, which: int, all_of_it: bool) -> None:
        """Redis loses the lease of a pump that is at work, and the next one begins beside it."""
        account = self.accounts[which]
        self._behave(account, "", 0)
        may_send = self._may_send(account)
        before = len(self.stage.received(account))
        with pumping(self.stage, account, after=before + 1):
            if all_of_it:
                client().flushdb()
            else:
                client().delete(lease_key(account.pk))
            pump.pump(account.pk)
        assert may_send or len(self.stage.received(account)) == before

    @rule(data=st.data(), begun=st.booleans(), arrived=st.booleans())
    def die_with_a_target_in_hand(self, data: st.DataObject, begun: bool, arrived: bool) -> None:
        run = self._one_of(data)
        left = run.targets.filter(status=TargetStatus.PENDING, recipient__opted_out_at=None).first()
        if run.status != RunStatus.RUNNING or left is None:
            return
        target = abandon(run, left.account, begun=begun, ago=LONG_AGO)
        if begun and arrived:
            self._arrive(target)

    @rule()
    def redis_forgets(self) -> None:
        client().flushdb()

    @rule(data=st.data())
    def close(self, data: st.DataObject) -> None:
        run = self._one_of(data)
        closed = {"window_start_hour": 0, "window_end_hour": 1, "send_days": _not_today()}
        Run.objects.filter(pk=run.pk, status=RunStatus.RUNNING).update(closes_at=timezone.now(), **closed)
        tick()

    @rule()
    def open(self) -> None:
        Run.objects.update(window_start_hour=0, window_end_hour=24, send_days=127)
        Run.objects.filter(status=RunStatus.QUEUED).update(opens_at=timezone.now())
        tick()

    # What always holds.

    @invariant()
    def the_counts_add_up(self) -> None:
        for run in getattr(self, "runs", []):
            add_up(run)

    @invariant()
    def nothing_arrives_twice(self) -> None:
        seen = Counter(line["key"] for line in self._delivered())
        twice = {key for key, often in seen.items() if often > 1}
        allowed = set() if getattr(self, "idempotent", True) else self.sent_again
        assert {key.rpartition("-")[0] for key in twice} <= allowed

    @invariant()
    def parts_arrive_in_order(self) -> None:
        arrived: dict[str, list[int]] = {}
        for line in self._delivered():
            target, _, part = line["key"].rpartition("-")
            arrived.setdefault(target, []).append(int(part))
        assert all(parts == sorted(parts) for parts in arrived.values())

    @invariant()
    def what_is_sent_has_arrived(self) -> None:
        arrived = {line["to"] for line in self._delivered()}
        sent = RunTarget.objects.filter(account__in=getattr(self, "accounts", []), ledger__outcome="sent")
        assert set(sent.values_list("recipient__address", flat=True)) <= arrived

    @invariant()
    def who_must_not_be_written_to_is_not(self) -> None:
        received = Counter(
            line["to"] for account in getattr(self, "accounts", []) for line in self._log(account)
        )
        assert all(received[address] <= often for address, often in getattr(self, "out", {}).items())

    @invariant()
    def no_message_is_tried_more_than_five_times(self) -> None:
        assert not Attempt.objects.filter(run__in=getattr(self, "runs", []), attempt__gt=5).exists()

    @invariant()
    def an_account_with_work_will_wake_up(self) -> None:
        for account in getattr(self, "accounts", []):
            held = account.targets.filter(status=TargetStatus.SENDING).exists()
            if held or (self._may_send(account) and not self._sleeps_for_good(account)):
                assert Account.objects.get(pk=account.pk).wake_at is not None

    def teardown(self) -> None:
        """Without further trouble every run ends by itself: only accounts that are woken work."""
        if not hasattr(self, "accounts"):
            return
        for account in self.accounts:
            self._behave(account, "", 0)
        for _ in range(8):
            self.open()
            for account in self.accounts:
                lifecycle.start_account(account)
            for run in Run.objects.filter(pk__in=[run.pk for run in self.runs], status=RunStatus.PAUSED):
                try:
                    lifecycle.resume(run)
                except WrongStateError:
                    continue  # canceled, and waits for the pump to find what was in the air
            for account in Account.objects.filter(wake_at__isnull=False):
                pump.pump(account.pk)
        for run in self.runs:
            add_up(run)
            assert run.status in SETTLED_RUN, f"{run.status}: {run.summary}"
        self.nothing_arrives_twice()

    def _one_of(self, data: st.DataObject) -> Run:
        if not self.runs:
            self.fire(to=2, parts=1, shared=False)
        run: Run = data.draw(st.sampled_from(self.runs))
        run.refresh_from_db()
        return run

    def _delivered(self) -> list[Any]:
        return self.stage.delivered(*getattr(self, "accounts", []))

    def _log(self, account: Account) -> list[Any]:
        return self.stage.received(account)

    def _out(self, target: RunTarget) -> None:
        address = target.recipient.address
        self.out[address] = sum(
            line["to"] == address for account in self.accounts for line in self.stage.received(account)
        )

    def _may_send(self, account: Account) -> bool:
        """Return whether the account has something to send, and nothing stops it."""
        return RunTarget.objects.filter(
            account=account,
            account__status=AccountStatus.ACTIVE,
            status__in=[TargetStatus.PENDING, TargetStatus.SENDING],
            run__status=RunStatus.RUNNING,
        ).exists()

    def _sleeps_for_good(self, account: Account) -> bool:
        """Return whether the windows of its runs have closed, and the tick has not noticed yet."""
        return not Run.objects.filter(
            targets__account=account, status=RunStatus.RUNNING, closes_at__gt=timezone.now()
        ).exists()

    def _arrive(self, target: RunTarget) -> None:
        """The message that a dead pump had begun did leave."""
        message = Message(
            address=target.recipient.address, kind="text", text="Hello", media=None, action="message"
        )
        transport = send_loop().transport(target.account.transport, target.account.credentials)
        self._behave(target.account, "", 0)
        send_loop().run(transport.send(message, f"{target.key}-{target.parts_done}"))

    def _behave(self, account: Account, trouble: str, rate: float) -> None:
        wish: dict[str, Any] = {}
        if trouble == "reject":
            everybody = RunTarget.objects.filter(account=account)
            wish = {"reject": list(everybody.values_list("recipient__address", flat=True))[::3]}
        elif trouble:
            wish = {trouble: True if trouble == "not_connected" else rate}
        self.stage.behave(account, **TROUBLE | wish)


def _not_today() -> int:
    return 127 & ~(1 << timezone.now().weekday())


def live(stage: Stage, quick: Settings, *, lives: int, steps: int) -> None:
    quick.PUMP_SECONDS = 0.6
    quick.NOT_CONNECTED_SECONDS = 0.02
    quick.BACKOFF_BASE_SECONDS = 0.005
    Life.stage = stage
    run_state_machine_as_test(
        Life,
        settings=settings(
            max_examples=lives,
            stateful_step_count=steps,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


def test_any_life_of_runs_ends_well(stage: Stage, quick: Settings) -> None:
    live(stage, quick, lives=8, steps=14)


@pytest.mark.soak
def test_a_hundred_long_lives_of_runs_end_well(stage: Stage, quick: Settings) -> None:
    live(stage, quick, lives=100, steps=40)
