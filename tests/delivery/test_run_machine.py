"""R3, R7 and R8 over random lives of runs: whatever happens, in whatever order, the counts add up, nothing
arrives twice, and all comes to an end."""

from collections import Counter
from datetime import timedelta
from typing import Any, ClassVar

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

from accounts.models import Recipient
from delivery import engine, lifecycle
from delivery.lifecycle import WrongStateError
from delivery.models import Run, RunTarget
from delivery.states import SETTLED_RUN, PauseReason, RunStatus, TargetStatus
from delivery.tick import tick
from tests.delivery.stage import Stage, abandon, add_up

LONG_AGO = timedelta(minutes=5)
TROUBLE: dict[str, Any] = {
    "error_rate": 0.0,
    "error_rate_after": 0.0,
    "cut": 0.0,
    "garbage": 0.0,
    "not_connected": False,
    "reject": [],
}


class Life(RuleBasedStateMachine):
    """One account, up to three runs."""

    stage: ClassVar[Stage]

    @initialize(idempotent=st.booleans())
    def begin(self, idempotent: bool) -> None:
        self.idempotent = idempotent
        self.account = self.stage.account(idempotent=idempotent)
        self.runs: list[Run] = []
        self.sent_again: set[str] = set()

    # What people do.

    @precondition(lambda self: len(self.runs) < 3)
    @rule(to=st.integers(1, 5), parts=st.integers(1, 2))
    def fire(self, to: int, parts: int) -> None:
        self.runs.append(self.stage.fire(self.account, to=to, parts=parts))

    @rule(data=st.data(), move=st.sampled_from(["pause", "resume", "cancel", "retry_failed"]))
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

    @rule()
    def account_comes_back(self) -> None:
        lifecycle.start_account(self.account)

    # What time and machines do.

    @rule(trouble=st.sampled_from(["", *TROUBLE]), rate=st.sampled_from([0.3, 1.0]))
    def pump(self, trouble: str, rate: float) -> None:
        self._behave(trouble, rate)
        engine.pump(self.account.pk)

    @rule(data=st.data(), begun=st.booleans())
    def die_with_a_target_in_hand(self, data: st.DataObject, begun: bool) -> None:
        run = self._one_of(data)
        if run.status == RunStatus.RUNNING and run.targets.filter(status=TargetStatus.PENDING).exists():
            abandon(run, self.account, begun=begun, ago=LONG_AGO)

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
        if hasattr(self, "account"):
            seen = Counter(line["key"] for line in self.stage.delivered(self.account))
            twice = {key for key, often in seen.items() if often > 1}
            allowed = set() if self.idempotent else self.sent_again
            assert {key.rpartition("-")[0] for key in twice} <= allowed

    @invariant()
    def what_is_sent_has_arrived(self) -> None:
        if hasattr(self, "account"):
            arrived = {line["to"] for line in self.stage.delivered(self.account)}
            sent = RunTarget.objects.filter(account=self.account, ledger__outcome="sent")
            assert set(sent.values_list("recipient__address", flat=True)) <= arrived

    def teardown(self) -> None:
        """Once nothing goes wrong any more, every run comes to its end."""
        if not hasattr(self, "account"):
            return
        self._behave("", 0)
        for _ in range(8):
            self.open()
            lifecycle.start_account(self.account)
            for run in Run.objects.filter(pk__in=[run.pk for run in self.runs], status=RunStatus.PAUSED):
                try:
                    lifecycle.resume(run)
                except WrongStateError:
                    continue  # canceled, and waits for the pump to find what was in the air
            engine.pump(self.account.pk)
        for run in self.runs:
            add_up(run)
            assert run.status in SETTLED_RUN, f"{run.status}: {run.summary}"
        self.nothing_arrives_twice()

    def _one_of(self, data: st.DataObject) -> Run:
        if not self.runs:
            self.fire(to=2, parts=1)
        run: Run = data.draw(st.sampled_from(self.runs))
        run.refresh_from_db()
        return run

    def _behave(self, trouble: str, rate: float) -> None:
        wish: dict[str, Any] = {}
        if trouble == "reject":
            everybody = RunTarget.objects.filter(account=self.account)
            wish = {"reject": list(everybody.values_list("recipient__address", flat=True))[::3]}
        elif trouble:
            wish = {trouble: True if trouble == "not_connected" else rate}
        self.stage.behave(self.account, **TROUBLE | wish)


def _not_today() -> int:
    return 127 & ~(1 << timezone.now().weekday())


def test_any_life_of_runs_ends_well(stage: Stage, quick: Settings) -> None:
    quick.PUMP_SECONDS = 0.6
    quick.NOT_CONNECTED_SECONDS = 0.02
    quick.BACKOFF_BASE_SECONDS = 0.005
    Life.stage = stage
    run_state_machine_as_test(
        Life,
        settings=settings(
            max_examples=8,
            stateful_step_count=14,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
