"""Plans of other runs of an account are read by its own rows, however many other runs there are."""

import json
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from delivery.planning.planned_jobs import ARRIVALS, Whose, arrivals_of
from tests.delivery.engine.test_plans import nodes, read_by
from tests.factories import RunTargetFactory

pytestmark = pytest.mark.django_db

OWN, LITTLE, OTHERS, MUCH = 8, 20, 8, 1_000  # runs of the account, with few targets, and others with many
FILL = """
INSERT INTO delivery_runtarget SELECT (jsonb_populate_record(t, jsonb_build_object(
    'id', t.id + 10000 * (run + 1) + n, 'recipient_id', t.recipient_id + n, 'run_id', t.run_id + 1 + run,
    'new_person', CASE WHEN run < %(own)s THEN 1 ELSE 0 END))).*
FROM delivery_runtarget t, generate_series(0, %(own)s + %(others)s - 1) run,
     generate_series(1, CASE WHEN run < %(own)s THEN %(little)s ELSE %(much)s END) n
WHERE t.id = %(target)s
"""


def test_only_the_targets_of_the_runs_themselves_are_read() -> None:
    target = RunTargetFactory.create()
    runs = [target.run_id + 1 + run for run in range(OWN)]
    sizes = {"own": OWN, "little": LITTLE, "others": OTHERS, "much": MUCH, "target": target.pk}
    named: dict[str, Any] = {"accounts": [target.account_id] * OWN, "runs": runs, "chats": [False] * OWN}
    named["now"] = timezone.now()
    with connection.cursor() as cursor:
        cursor.execute(FILL, sizes)
        cursor.execute("ANALYZE delivery_runtarget")
        cursor.execute(f"EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) {ARRIVALS}", named)
        (answer,) = cursor.fetchone()
    plan = (json.loads(answer) if isinstance(answer, str) else answer)[0]["Plan"]
    read = [read_by(node) for node in nodes(plan) if node.get("Relation Name") == "delivery_runtarget"]
    assert sum(read) <= 2 * OWN * LITTLE
    whose = [Whose(account_id=target.account_id, run_id=run, counts_chats=False) for run in runs]
    found = arrivals_of(whose, now=timezone.now())
    assert [[arrival.targets for arrival in each] for each in found.values()] == [[LITTLE]] * OWN
