"""The queries find their indexes on some thousands of rows; `python -m benchmarks plans` asks of a million."""

import pytest
from django.db import connection
from django.db.models import Sum
from django.utils import timezone

from activity.models import Attempt
from benchmarks import plans
from benchmarks.tables import crowd
from delivery.models import Run, RunTarget
from tests.factories import OperatorFactory

pytestmark = pytest.mark.django_db

SMALL = crowd.Size(targets=2_000, attempts=1_000, owners=10, accounts=50, runs=200)
COUNTED = ("pending", "sending", "sent", "failed")


def test_the_crowd_is_as_large_as_asked_for_and_its_counters_are_right() -> None:
    crowd.fill(SMALL)
    assert RunTarget.objects.count() == pytest.approx(SMALL.targets, rel=0.1)
    assert Attempt.objects.count() == SMALL.attempts
    sums = Run.objects.aggregate(**{f"all_{status}": Sum(status) for status in COUNTED})
    assert sums == {f"all_{status}": RunTarget.objects.filter(status=status).count() for status in COUNTED}


def test_rows_can_be_added_to_the_crowd() -> None:
    crowd.fill(SMALL)
    assert OperatorFactory.create(username="one more").pk == SMALL.owners + 1


def test_every_query_is_served_by_an_index() -> None:
    """Queries of the engine and the tick use their own indexes; for a short page the planner may find a shorter way."""
    crowd.fill(crowd.Size(targets=20_000, attempts=20_000))
    with connection.cursor() as cursor:
        cursor.execute(
            "SET LOCAL enable_seqscan = off"
        )  # some tables are so short here that reading them is quicker
    now = timezone.now()
    answers = [plans.ask(question, times=1) for question in plans.questions(now)]
    assert [answer.question.name for answer in answers if answer.read_whole & plans.GROWING] == []
    own = {question.name for question in (*plans.engine(now), *plans.tick(now))}
    assert [
        answer.question.name for answer in answers if answer.question.name in own and not answer.good
    ] == []


def test_reading_a_table_whole_is_noticed() -> None:
    crowd.fill(SMALL)
    everything = plans.Question.of("all of them", "target_claim", RunTarget.objects.filter(error="none"))
    assert not plans.ask(everything, times=1).good
