"""The command that finds in the ledger what somebody got twice."""

import csv
from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from accounts.models import User
from tests.factories import AttemptFactory, ReminderFactory, RunFactory, RunTargetFactory

pytestmark = pytest.mark.django_db


def said(*arguments: str) -> str:
    out = StringIO()
    call_command("find_doubles", *arguments, stdout=out)
    return out.getvalue()


def test_nothing_is_found_where_parts_and_attempts_are_as_they_should_be(owner: User) -> None:
    target = RunTargetFactory.create(run__reminder__owner=owner, sent=True)
    AttemptFactory.create(target=target, part=0, outcome="unknown", attempt=1)
    AttemptFactory.create(target=target, part=0, outcome="sent", attempt=2)
    AttemptFactory.create(target=target, part=1, outcome="sent")
    AttemptFactory.create_batch(2, test_send=True)
    assert said() == "Nothing was sent twice.\n"


def test_the_same_part_of_a_target_sent_twice_is_found(owner: User) -> None:
    target = RunTargetFactory.create(run__reminder__owner=owner, sent=True)
    AttemptFactory.create(target=target, provider_id="one", outcome="sent")
    AttemptFactory.create(target=target, provider_id="two", outcome="sent")
    out = StringIO()
    with pytest.raises(CommandError, match="Sent more than once: 1") as error:
        call_command("find_doubles", stdout=out)
    assert error.value.returncode == 1
    assert f"same target: {target.recipient.address} got part 1 2 times" in out.getvalue()
    assert "one two" in out.getvalue()


def test_a_moment_that_was_fired_again_is_found_and_another_moment_is_not(owner: User) -> None:
    reminder = ReminderFactory.create(owner=owner)
    now = timezone.now().replace(minute=20)
    runs = [
        RunFactory.create(reminder=reminder, fired_at=now + timedelta(minutes=minutes), due_at=None)
        for minutes in (0, 5, 24 * 60)
    ]
    first = RunTargetFactory.create(run=runs[0], sent=True)
    others = [
        RunTargetFactory.create(run=run, recipient=first.recipient, account=first.account, sent=True)
        for run in runs[1:]
    ]
    for target in (first, *others):
        AttemptFactory.create(target=target, outcome="sent")
    out = StringIO()
    with pytest.raises(CommandError, match="Sent more than once: 1"):
        call_command("find_doubles", "--csv", stdout=out)
    [row] = csv.DictReader(StringIO(out.getvalue()))
    assert (row["kind"], row["times"]) == ("same moment", "2")
    assert set(row["runs"].split()) == {str(runs[0].pk), str(runs[1].pk)}


def test_what_is_older_than_asked_for_is_left_out(owner: User) -> None:
    target = RunTargetFactory.create(run__reminder__owner=owner, sent=True)
    AttemptFactory.create_batch(2, target=target, outcome="sent", at=timezone.now() - timedelta(days=8))
    assert said() == "Nothing was sent twice.\n"
    with pytest.raises(CommandError):
        said("--days", "30")
