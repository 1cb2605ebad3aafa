"""To count what a hand-over moves reads the contacts of its own recipients, however many others there are."""

import json

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.models import User
from delivery.hand_over.split import Wish, count
from reminders.fire import fire
from tests.delivery.engine.test_plans import nodes, read_by
from tests.factories import AccountFactory, ContactFactory, RecipientFactory, ReminderFactory

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("redis")]

TARGETS, OTHERS = 30, 8_000
CONTACTS = """
INSERT INTO accounts_contact (recipient_id, account_id, talked_at)
SELECT recipient_id + 1000 + n, account_id, talked_at FROM accounts_contact, generate_series(1, %s) n
"""


def test_only_the_contacts_of_its_own_recipients_are_read(owner: User) -> None:
    office, shop = AccountFactory.create_batch(2, owner=owner)
    people = RecipientFactory.create_batch(TARGETS, owner=owner)
    ContactFactory.create(recipient=people[0], account=office)
    run = fire(
        ReminderFactory.create(owner=owner, accounts=[office], recipients=people, around_the_clock=True)
    )
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")  # contacts of nobody
        cursor.execute(CONTACTS, [OTHERS])
        cursor.execute("SET LOCAL session_replication_role = origin")
        cursor.execute("ANALYZE accounts_contact, delivery_runtarget, accounts_recipient")
        with CaptureQueriesContext(connection) as asked:
            split = count(run, Wish(to=[shop.pk]), [office.pk], now=timezone.now())
        (statement,) = [each["sql"] for each in asked.captured_queries if "accounts_contact" in each["sql"]]
        cursor.execute(f"EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) {statement}")
        (answer,) = cursor.fetchone()
    plan = (json.loads(answer) if isinstance(answer, str) else answer)[0]["Plan"]
    read = [read_by(node) for node in nodes(plan) if node.get("Relation Name") == "accounts_contact"]
    assert split.moved == TARGETS - 1
    assert sum(read) <= TARGETS
