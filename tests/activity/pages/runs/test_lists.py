"""The lists of runs and attempts: filters that stand in the address, and pages that follow one another."""

from datetime import UTC, datetime

import pytest
from django.test import Client
from django.urls import reverse
from pytest_django import DjangoAssertNumQueries

from accounts.models import User
from tests.factories import (
    AccountFactory,
    AttemptFactory,
    RecipientFactory,
    ReminderFactory,
    RunAccountFactory,
    RunFactory,
    RunTargetFactory,
)

pytestmark = pytest.mark.django_db


def runs(client: Client, user: User, **query: str) -> list[str]:
    """The names of the runs that a person is shown."""
    client.force_login(user)
    answer = client.get(reverse("activity:list"), query)
    assert answer.status_code == 200
    return [run.name for run in answer.context["page"].rows]


def attempts(client: Client, user: User, **query: str) -> list[str]:
    client.force_login(user)
    answer = client.get(reverse("activity:attempts"), query)
    assert answer.status_code == 200
    return [row.provider_id for row in answer.context["page"].rows]


def at(day: int, hour: int = 12) -> datetime:
    return datetime(2026, 3, day, hour, tzinfo=UTC)


def run_named(owner: User, name: str, **values: object) -> object:
    return RunFactory.create(reminder=ReminderFactory.create(owner=owner, name=name), **values)


def test_runs_are_filtered_by_account(client: Client, owner: User) -> None:
    run, _other = run_named(owner, "Mine"), run_named(owner, "Other")
    share = RunAccountFactory.create(run=run)
    assert runs(client, owner, account=str(share.account_id)) == ["Mine"]


def test_runs_are_filtered_by_the_readers_days(client: Client, owner: User) -> None:
    owner.zone = "Asia/Kuala_Lumpur"  # eight hours ahead
    owner.save()
    for name, moment in (("Early", at(1, 15)), ("Late", at(1, 17)), ("Next", at(3))):
        run_named(owner, name, fired_at=moment)
    assert runs(client, owner, since="2026-03-02", until="2026-03-02") == ["Late"]
    assert runs(client, owner, until="2026-03-01") == ["Early"]
    assert runs(client, owner, until="9999-12-31") == ["Next", "Late", "Early"]
    assert runs(client, owner, since="2026-03-02") == ["Next", "Late"]


def test_runs_are_found_by_their_name_within_a_status(client: Client, owner: User) -> None:
    run_named(owner, "Rent is due", success=True)
    run_named(owner, "Rent is late")
    assert runs(client, owner, q="RENT", status="success") == ["Rent is due"]


def test_runs_are_filtered_by_their_kind(client: Client, owner: User) -> None:
    run_named(owner, "Rent", success=True)
    run_named(owner, "Answer", kind="second")
    run_named(owner, "Still there?", kind="follow_up", success=True)
    assert runs(client, owner, kind="reminder") == ["Rent"]
    assert runs(client, owner, kind="second") == ["Answer"]
    assert runs(client, owner, kind="follow_up", status="success") == ["Still there?"]
    assert runs(client, owner, kind="joke") == ["Still there?", "Answer", "Rent"]


def test_another_persons_account_filters_nothing_out_of_theirs(
    client: Client, owner: User, stranger: User
) -> None:
    run_named(stranger, "Strange")
    share = RunAccountFactory.create(run=run_named(owner, "Mine"))
    assert runs(client, stranger, account=str(share.account_id)) == ["Strange"]
    assert runs(client, owner, account="no-number") == ["Mine"]


def test_days_in_the_wrong_order_are_told_next_to_the_field(client: Client, owner: User) -> None:
    client.force_login(owner)
    answer = client.get(reverse("activity:list"), {"since": "2026-03-05", "until": "2026-03-01"})
    assert "is before the first one" in answer.content.decode()
    assert "Write a date" in client.get(reverse("activity:list"), {"since": "x"}).content.decode()


def test_the_filters_stay_in_every_link(client: Client, owner: User) -> None:
    reminder = ReminderFactory.create(owner=owner, name="Rent")
    RunFactory.create_batch(51, reminder=reminder, success=True)
    client.force_login(owner)
    text = client.get(reverse("activity:list"), {"q": "rent", "status": "success"}).content.decode()
    assert "?q=rent&amp;status=success&amp;after=" in text
    assert "?q=rent&amp;status=failed" in text


def test_only_who_may_touch_a_run_gets_buttons(
    client: Client, owner: User, mate: User, reader: User, staff: User
) -> None:
    run_named(owner, "Held", paused=True, pending=1)
    for person, may in ((owner, True), (mate, True), (staff, True), (reader, False)):
        client.force_login(person)
        text = client.get(reverse("activity:list")).content.decode()
        assert ('name="one"' in text) == may
        assert ("With the chosen runs" in text) == may


def test_attempts_are_the_owners_and_the_newest_first(
    client: Client, owner: User, reader: User, stranger: User
) -> None:
    target = RunTargetFactory.create(run__reminder__owner=owner, sent=True)
    for name, day in (("old", 1), ("new", 3), ("between", 2)):
        AttemptFactory.create(target=target, provider_id=name, at=at(day))
    for person in (owner, reader):
        assert attempts(client, person) == ["new", "between", "old"]
    assert attempts(client, stranger) == []


def test_attempts_are_filtered_by_outcome_account_day_and_recipient(client: Client, owner: User) -> None:
    account = AccountFactory.create(owner=owner)
    anna = RecipientFactory.create(owner=owner, name="Anna Lee")
    target = RunTargetFactory.create(run__reminder__owner=owner, recipient=anna, account=account)
    other = RunTargetFactory.create(run=target.run)
    AttemptFactory.create(target=target, provider_id="hers", at=at(1))
    AttemptFactory.create(target=other, provider_id="other", at=at(2))
    AttemptFactory.create(target=other, rejected=True, at=at(3))
    assert attempts(client, owner, outcome="rejected") == [""]
    assert attempts(client, owner, account=str(account.pk)) == ["hers"]
    assert attempts(client, owner, q="ann") == ["hers"]
    assert attempts(client, owner, q="nobody") == []
    assert attempts(client, owner, since="2026-03-02", until="2026-03-02") == ["other"]


def test_pages_of_attempts_follow_one_another(client: Client, owner: User) -> None:
    target = RunTargetFactory.create(run__reminder__owner=owner, sent=True)
    for number in range(60):
        AttemptFactory.create(target=target, provider_id=str(number), at=at(1 + number // 20))
    client.force_login(owner)
    first = client.get(reverse("activity:attempts")).context["page"]
    second = client.get(reverse("activity:attempts"), {"after": first.after}).context["page"]
    shown = [row.provider_id for row in (*first.rows, *second.rows)]
    assert shown == [str(number) for number in range(59, -1, -1)]


@pytest.mark.parametrize(("name", "queries"), [("activity:list", 8), ("activity:attempts", 7)])
def test_a_list_takes_the_same_queries_however_long_it_is(
    client: Client, owner: User, django_assert_num_queries: DjangoAssertNumQueries, name: str, queries: int
) -> None:
    client.force_login(owner)
    target = RunTargetFactory.create(run__reminder__owner=owner, sent=True)
    AttemptFactory.create_batch(8, target=target)
    RunFactory.create_batch(8, reminder=target.run.reminder)
    client.get(reverse(name))
    with django_assert_num_queries(queries):
        client.get(reverse(name))
