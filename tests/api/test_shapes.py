"""The words of the shapes are those of the models."""

from typing import get_args

from accounts.models import Recipient
from accounts.recipients.states import STATES
from activity.models import Attempt
from api.schemas.queues import ItemStateWord, Pace, TookWord
from api.schemas.recipients import RecipientKind, State
from api.schemas.reminders import ReminderStatus
from api.schemas.runs import AttemptOutcome, RunKind, TargetVerb, Verb
from delivery.models import Run
from delivery.run_actions import ACTIONS, TARGET_ACTIONS
from queues.actions import Took
from queues.models import Queue
from queues.states import ItemState
from reminders.models import Reminder


def test_no_word_is_missing_and_none_is_invented() -> None:
    assert set(get_args(RecipientKind)) == set(Recipient.Kind.values)
    assert set(get_args(State)) == set(STATES)
    assert set(get_args(RunKind)) == set(Run.Kind.values)
    assert set(get_args(AttemptOutcome)) == set(Attempt.Outcome.values)
    assert set(get_args(ItemStateWord)) == set(ItemState)
    assert set(get_args(TookWord)) == set(Took)
    assert set(get_args(Pace)) == set(Queue.Pace.values)
    assert set(get_args(ReminderStatus)) == set(Reminder.Status.values)


def test_every_action_of_the_pages_has_its_route() -> None:
    assert set(get_args(Verb)) == set(ACTIONS)
    assert set(get_args(TargetVerb)) == set(TARGET_ACTIONS)
