"""Queues and items that the database itself refuses."""

from typing import Any

import pytest
from django.utils import timezone

from tests.factories import (
    ItemFactory,
    QueueAccountFactory,
    QueueFactory,
    QueueImportFactory,
    SourceFactory,
    SourceReadFactory,
    SourceRowFactory,
)
from tests.refusals import (
    Refusal,
    as_parameters,
    changed,
    check_below_zero,
    declared,
    doubled,
    numbers_from_zero,
)
from tests.reminders.test_constraints import BAD_WINDOWS

pytestmark = pytest.mark.django_db

REFUSALS = [
    *(
        changed(sentence, "queue_window", QueueFactory, window_start_hour=start, window_end_hour=end)
        for sentence, (start, end) in BAD_WINDOWS.items()
    ),
    changed("a queue that sends on no day", "queue_send_days", QueueFactory, send_days=0),
    changed("a queue of an unknown pace", "queue_pace_known", QueueFactory, pace="hasty"),
    changed("a queue on an unknown channel", "queue_channel_known", QueueFactory, channel="fax"),
    changed("a queue with an unknown action", "queue_action_known", QueueFactory, action="call"),
    doubled("an account twice in one queue", "queue_account_once", QueueAccountFactory, "queue", "account"),
    doubled("a carrier of two queues", "queues_queue_carrier_id_key", QueueFactory, "carrier"),
    doubled("a target of two items", "queues_item_target_id_key", ItemFactory, "target"),
    doubled(
        "an own id twice in one source", "item_once_per_source", ItemFactory, "queue", "source", "own_id"
    ),
    changed("an import in an unknown stage", "queue_import_status_known", QueueImportFactory, status="lost"),
    changed("an item without an own id", "item_has_an_own_id", ItemFactory, own_id=""),
    changed("an item of an unknown priority", "item_priority_known", ItemFactory, priority=2),
    changed(
        "an item withdrawn by nobody", "item_withdrawn_by_somebody", ItemFactory, withdrawn_at=timezone.now()
    ),
    changed(
        "an item withdrawn by a person at no time",
        "item_withdrawn_by_somebody",
        ItemFactory,
        withdrawn_by="person",
    ),
    doubled("a table twice for one owner", "source_once", SourceFactory, "owner", "key"),
    changed("a source at an unknown service", "source_kind_known", SourceFactory, kind="fax"),
    changed("a source that is read without a pause", "source_interval", SourceFactory, every_minutes=0),
    changed("a read with an unknown end", "source_read_outcome_known", SourceReadFactory, outcome="odd"),
    doubled(
        "two reads of one source at once",
        "source_read_one_at_a_time",
        SourceReadFactory,
        "source",
        outcome="reading",
        ended_at=None,
    ),
    doubled("an own id twice in one table", "source_row_once", SourceRowFactory, "source", "own_id"),
    doubled(
        "a row without an id twice",
        "source_row_without_id_once",
        SourceRowFactory,
        "source",
        "place",
        own_id="",
    ),
]


@pytest.mark.parametrize("refusal", as_parameters(REFUSALS))
def test_the_database_refuses(refusal: Refusal) -> None:
    refusal.check()


def test_every_constraint_is_tried() -> None:
    assert declared("queues") - {refusal.constraint for refusal in REFUSALS} == set()


@pytest.mark.parametrize(("model", "column"), numbers_from_zero("queues"))
def test_a_number_does_not_fall_below_zero(model: Any, column: str) -> None:
    check_below_zero(model, column)
