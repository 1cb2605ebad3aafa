"""Beat dies and comes back around due moments, or runs twice: each moment is fired once (SPEC S1)."""

import time
from collections.abc import Iterator, Sequence
from random import Random

import pytest

from tests.chaos.evidence import part_keys
from tests.chaos.lab import Lab, Sender
from tests.chaos.operator import FiringView

SETTLED = {"success", "partial", "failed", "canceled", "skipped"}


@pytest.fixture
def one_beat_afterwards(lab: Lab) -> Iterator[None]:
    """The other tests count on it."""
    yield
    lab.want_beats(1)


def fired(lab: Lab, reminders: Sequence[int]) -> list[FiringView]:
    """The runs of all reminders once each has one that has settled, and a few more ticks have passed."""

    def all_settled() -> bool:
        settled = {firing.reminder for firing in lab.operator.firings(reminders) if firing.status in SETTLED}
        return settled == set(reminders)

    lab.until(all_settled, "every reminder has fired and its run has settled")
    time.sleep(3)  # a second run for a moment would come with one of the next ticks, which are a second apart
    return lab.operator.firings(reminders)


def check_each_once(lab: Lab, sender: Sender, reminders: Sequence[int]) -> None:
    """Check that each has one run for its own moment, and that the gateway got each message once, and no other."""
    firings = fired(lab, reminders)
    assert [firing.reminder for firing in sorted(firings, key=lambda each: each.reminder)] == sorted(
        reminders
    )
    assert {(firing.status, firing.on_its_moment) for firing in firings} == {("success", True)}
    keys = [key for firing in firings for key in part_keys(lab.operator.targets(firing.run))]
    assert sender.seen.arrivals() == dict.fromkeys(keys, 1)


@pytest.mark.usefixtures("one_beat_afterwards")
def test_each_moment_fires_once_while_beat_and_workers_are_killed(lab: Lab) -> None:
    lab.want_workers(2)
    lab.want_beats(1)
    sender = lab.add_account()
    rng = Random(4)
    reminders = lab.operator.schedule(sender.id, targets=2, after=[rng.uniform(2, 13) for _ in range(24)])
    for disaster in (lab.kill_beats, lab.kill_workers, lab.kill_beats):
        time.sleep(rng.uniform(1.5, 2.5))
        disaster()
        time.sleep(rng.uniform(0.5, 1.5))  # moments pass while it is gone
        lab.want_beats(1)
        lab.want_workers(2)
    check_each_once(lab, sender, reminders)


@pytest.mark.usefixtures("one_beat_afterwards")
def test_each_moment_fires_once_with_two_beats_and_many_due_at_once(lab: Lab) -> None:
    lab.want_workers(2)
    lab.want_beats(2)
    sender = lab.add_account()
    reminders = lab.operator.schedule(
        sender.id, targets=2, after=[4.0] * 20 + [4.0 + 0.1 * n for n in range(20)]
    )
    check_each_once(lab, sender, reminders)
