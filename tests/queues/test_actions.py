"""The items of a queue: taken once, changed, re-planned and withdrawn until they have begun."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.core.exceptions import PermissionDenied
from django.db import connection
from django.utils import timezone

from accounts.models import Account, Recipient, User
from delivery.models import Run, RunTarget, TargetContent
from delivery.states import RunStatus, TargetStatus
from queues.actions import Result, Took, put, replan, withdraw
from queues.entries import Entry
from queues.models import Item, Queue
from queues.states import ItemState, with_state
from queues.steering import cancel, pause, resume
from reminders.drafts import NotPossibleError
from tests.delivery.stage import add_up
from tests.factories import (
    AccountFactory,
    AttemptFactory,
    ContactFactory,
    LimitFactory,
    MediaFactory,
    QueueFactory,
    RecipientFactory,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("redis")]

SOON = timezone.now() + timedelta(days=2)


def entry(number: int = 1, **values: Any) -> Entry:
    defaults = {"own_id": f"row-{number}", "address": f"+60127000{number:03}", "text": f"Text {number}"}
    return Entry(**defaults | values)


def take(queue: Queue, *entries: Entry, source: str = "file", by: User | None = None) -> list[Result]:
    return put(queue, entries, source=source, by=by)


def took(results: list[Result]) -> list[Took]:
    return [result.took for result in results]


def states(queue: Queue) -> list[str]:
    rows = with_state(Item.objects.filter(queue=queue)).order_by("pk")
    return list(rows.values_list("state", flat=True))  # type: ignore[misc] # an annotation


def text_of(item: Item) -> str:
    (part,) = item.content.parts or []
    return str(part["text"])


def item_of(queue: Queue, own_id: str = "row-1") -> Item:
    return Item.objects.select_related("target__run", "target__content").get(queue=queue, own_id=own_id)


def test_items_become_targets_of_one_run_with_contents_of_their_own(owner: User) -> None:
    queue = QueueFactory.create(owner=owner)
    assert took(take(queue, *(entry(n) for n in range(5)))) == [Took.ADDED] * 5
    run = Run.objects.get(reminder=queue.carrier)
    assert (run.kind, run.status, run.total, run.pending) == ("queue", RunStatus.RUNNING, 5, 5)
    add_up(run)
    said = [text_of(item) for item in Item.objects.order_by("pk")]
    assert said == [f"Text {n}" for n in range(5)]


def test_the_same_entries_again_make_nothing_twice(owner: User) -> None:
    queue = QueueFactory.create(owner=owner)
    take(queue, entry(1), entry(2))
    assert took(take(queue, entry(1), entry(2))) == [Took.UNCHANGED] * 2
    assert RunTarget.objects.count() == Item.objects.count() == Recipient.objects.count() == 2


def test_an_own_id_is_another_item_in_another_source(owner: User) -> None:
    queue = QueueFactory.create(owner=owner)
    take(queue, entry(1), source="file")
    assert took(take(queue, entry(1), source="api")) == [Took.ADDED]
    assert Item.objects.count() == 2


def test_one_recipient_can_have_several_items_in_one_run(owner: User) -> None:
    queue = QueueFactory.create(owner=owner)
    same = {"address": "+60127000001"}
    assert took(take(queue, *(entry(n, **same) for n in range(3)))) == [Took.ADDED] * 3
    assert Run.objects.count() == 1
    assert Recipient.objects.count() == 1


def test_a_wrong_entry_stops_nothing_else(owner: User) -> None:
    queue = QueueFactory.create(owner=owner)
    results = take(
        queue,
        entry(1, address="nobody"),
        entry(2, text=""),
        entry(3, sender="A stranger"),
        entry(4, text="Dear {{ title }}"),
        entry(5, media=[7]),
        entry(6, planned_at=datetime(2026, 1, 1)),  # noqa: DTZ001 - that is the mistake
        entry(7),
        entry(7),
        entry(8, text="x" * 65_537),
        entry(9, priority=5),
    )
    assert took(results) == [*[Took.REFUSED] * 6, Took.ADDED, *[Took.REFUSED] * 3]
    assert all(result.why for result in results if result.took is Took.REFUSED)
    assert Run.objects.get().total == 1


def test_texts_of_65536_characters_are_taken(owner: User) -> None:
    queue = QueueFactory.create(owner=owner, by_email=True)
    long = entry(1, address="a@example.com", text="x" * 65_536, subject="y" * 65_536)
    assert took(take(queue, long)) == [Took.ADDED]


def test_values_fill_in_the_text_of_the_queue(owner: User) -> None:
    queue = QueueFactory.create(owner=owner, text="Dear {{ title }}")
    given = entry(1, text="", values={"title": "Dr. Lim"})
    assert took(take(queue, given, entry(2, text=""))) == [Took.ADDED, Took.REFUSED]
    item = item_of(queue)
    assert (item.content.parts, item.content.values) == (None, {"title": "Dr. Lim"})
    assert item.target.run.parts == [{"kind": "text", "text": "Dear {{ title }}"}]


def test_files_of_an_item_are_parts_of_its_own(owner: User) -> None:
    queue, media = QueueFactory.create(owner=owner), MediaFactory.create(owner=owner)
    take(queue, entry(1, media=[media.pk]))
    (part,) = item_of(queue).content.parts or []
    assert (part["kind"], part["text"], part["sha256"]) == ("media", "Text 1", media.sha256)
    assert [each["kind"] for each in Run.objects.get().parts] == ["media"]


def test_a_recipient_who_opted_out_is_skipped_with_the_reason(owner: User) -> None:
    queue = QueueFactory.create(owner=owner)
    RecipientFactory.create(owner=owner, address="+60127000001", opted_out=True)
    take(queue, entry(1), entry(2))
    assert states(queue) == ["skipped", "waiting"]
    assert item_of(queue).target.error == "opted out"
    assert Run.objects.get().left_out == 1


def test_planned_items_wait_for_their_time_and_others_do_not(owner: User) -> None:
    queue = QueueFactory.create(owner=owner)
    take(queue, entry(1, planned_at=SOON), entry(2))
    assert states(queue) == ["planned", "waiting"]
    assert item_of(queue).target.run.on_time_first
    steady = QueueFactory.create(owner=owner, steady=True)
    take(steady, entry(1))
    assert not item_of(steady).target.run.on_time_first


def test_a_steady_queue_ignores_planned_times(owner: User) -> None:
    queue = QueueFactory.create(owner=owner, steady=True)
    take(queue, entry(1, planned_at=SOON))
    assert states(queue) == ["waiting"]


def test_each_sender_has_a_run_of_its_own(owner: User) -> None:
    queue = QueueFactory.create(owner=owner, accounts=3)
    names = [account.name for account in queue.accounts.order_by("pk")]
    take(queue, *(entry(n, sender=names[n % 3]) for n in range(6)))
    assert sorted(run.run_accounts.get().account.name for run in Run.objects.all()) == sorted(names)
    assert {run.total for run in Run.objects.all()} == {2}


def test_items_without_a_sender_are_dealt_and_a_recipient_stays_with_one(owner: User) -> None:
    queue = QueueFactory.create(owner=owner, accounts=2)
    take(queue, *(entry(n) for n in range(10)))
    assert sorted(run.total for run in Run.objects.all()) == [5, 5]
    before = item_of(queue).target.account_id
    take(queue, entry(11, address=entry(1).address))
    assert item_of(queue, "row-11").target.account_id == before


def test_new_people_go_to_the_account_with_the_most_room_left_today(owner: User) -> None:
    roomy, small, full = AccountFactory.create_batch(3, owner=owner)
    for account, cap in ((roomy, 10), (small, 4), (full, 3)):
        LimitFactory.create(account=account, per_day=cap)
    AttemptFactory.create_batch(3, test_send=True, account=full)
    queue = QueueFactory.create(owner=owner, accounts=[full, small, roomy])
    take(queue, *(entry(n) for n in range(9)))
    assert {run.run_accounts.get().account: run.total for run in Run.objects.all()} == {roomy: 7, small: 2}
    take(queue, *(entry(n) for n in range(9, 14)))  # one after the other: all have some, and none is left out
    take(queue, entry(14))
    assert full in {run.run_accounts.get().account for run in Run.objects.all()}


@pytest.mark.parametrize("able", [True, False])
def test_an_item_goes_to_the_account_that_last_talked_with_the_person_if_it_can_send(
    owner: User, able: bool
) -> None:
    queue = QueueFactory.create(owner=owner, accounts=2)
    first, second = queue.accounts.order_by("pk")
    person = RecipientFactory.create(owner=owner, channel=queue.channel, address=entry(1).address)
    ContactFactory.create(account=first, recipient=person, talked_at=timezone.now() - timedelta(days=2))
    ContactFactory.create(account=second, recipient=person)  # in a reminder, or by a reply
    if not able:
        Account.objects.filter(pk=second.pk).update(status=Account.Status.OFFLINE)
    take(queue, entry(1))
    assert item_of(queue).target.account == (second if able else first)


def test_a_change_is_taken_until_the_item_has_begun(owner: User) -> None:
    queue = QueueFactory.create(owner=owner)
    take(queue, entry(1), entry(2))
    claimed, begun = item_of(queue).target, item_of(queue, "row-2").target
    now = timezone.now()
    sending = {"status": TargetStatus.SENDING, "fence": 1, "claimed_at": now}
    RunTarget.objects.filter(pk=claimed.pk).update(**sending)
    RunTarget.objects.filter(pk=begun.pk).update(**sending, begun_at=now)
    Run.objects.update(pending=0, sending=2)
    assert took(take(queue, entry(1, text="New"), entry(2, text="New"))) == [Took.CHANGED, Took.BEGUN]
    assert text_of(item_of(queue)) == "New"
    assert text_of(item_of(queue, "row-2")) == "Text 2"
    assert states(queue) == ["waiting", "sending"]  # the claim was released: nothing old is sent
    assert "begun" in item_of(queue, "row-2").late_change
    add_up(Run.objects.get())
    # Read again, the row still says so.
    assert took(take(queue, entry(2, text="New"))) == [Took.BEGUN]


def test_a_message_that_was_tried_counts_as_begun(owner: User) -> None:
    queue = QueueFactory.create(owner=owner)
    take(queue, entry(1))
    RunTarget.objects.update(attempts=1)
    assert took(take(queue, entry(1, text="New"))) == [Took.BEGUN]


def test_a_change_of_sender_or_priority_moves_the_item_to_another_run(owner: User) -> None:
    queue = QueueFactory.create(owner=owner, accounts=2)
    first, second = queue.accounts.order_by("pk")
    take(queue, entry(1, sender=first.name), entry(2, sender=first.name))
    assert took(take(queue, entry(1, sender=second.name))) == [Took.CHANGED]
    assert took(take(queue, entry(2, sender=first.name, priority=1))) == [Took.CHANGED]
    moved, raised = item_of(queue).target, item_of(queue, "row-2").target
    assert (moved.account, raised.run.priority) == (second, 1)
    for run in Run.objects.all():
        add_up(run)
    assert not Run.objects.get(priority=0, run_accounts__account=first).pending


def test_a_change_of_address_sends_to_the_other_recipient(owner: User) -> None:
    queue = QueueFactory.create(owner=owner)
    take(queue, entry(1))
    take(queue, entry(1, address="+60127000099"))
    assert item_of(queue).target.recipient.address == "+60127000099"


def test_withdrawn_items_are_skipped_and_spoil_no_success(owner: User) -> None:
    queue = QueueFactory.create(owner=owner)
    take(queue, entry(1), entry(2))
    assert withdraw(queue, by=owner, source="file", own_ids=["row-1"]).done == 1
    assert states(queue) == ["withdrawn", "waiting"]
    run = Run.objects.get()
    add_up(run)
    assert run.expected == 1
    assert withdraw(queue, by=owner, source="file", own_ids=["row-1"]).done == 0
    assert took(take(queue, entry(1))) == [Took.WITHDRAWN]


def test_an_item_that_its_source_withdrew_comes_back_with_its_row(owner: User) -> None:
    queue = QueueFactory.create(owner=owner)
    take(queue, entry(1), entry(2))
    withdraw(queue, by=None, source="file", own_ids=["row-1"], by_source=True)
    assert took(take(queue, entry(1))) == [Took.ADDED]
    assert states(queue) == ["waiting", "waiting"]
    withdraw(queue, by=owner, item_ids=[item_of(queue).pk])
    assert took(take(queue, entry(1))) == [Took.WITHDRAWN]


def test_items_are_planned_anew_in_bulk(owner: User) -> None:
    queue = QueueFactory.create(owner=owner)
    take(queue, entry(1), entry(2), entry(3, planned_at=SOON))
    everything = list(Item.objects.values_list("pk", flat=True))
    later = SOON + timedelta(days=1)
    assert replan(queue, item_ids=everything, planned_at=later, by=owner).done == 3
    assert set(RunTarget.objects.values_list("not_before", flat=True)) == {later}
    assert states(queue) == ["planned"] * 3
    for run in Run.objects.all():
        add_up(run)


def test_a_paused_queue_takes_items_and_sends_none(owner: User) -> None:
    queue = QueueFactory.create(owner=owner)
    pause(queue, by=owner)
    take(queue, entry(1))
    run = Run.objects.get()
    assert (run.status, run.pause_reason) == ("paused", "operator")
    resume(queue, by=owner)
    run.refresh_from_db()
    assert run.status == "running"


def test_a_canceled_queue_sends_what_is_added_later(owner: User) -> None:
    queue = QueueFactory.create(owner=owner)
    take(queue, entry(1))
    cancel(queue, by=owner)
    assert states(queue) == ["skipped"]
    take(queue, entry(2))
    assert states(queue) == ["skipped", "waiting"]


def test_only_people_who_operate_for_the_owner_touch_a_queue(
    owner: User, reader: User, stranger: User, mate: User
) -> None:
    queue = QueueFactory.create(owner=owner)
    for person in (reader, stranger):
        with pytest.raises(PermissionDenied):
            take(queue, entry(1), by=person)
        with pytest.raises(PermissionDenied):
            withdraw(queue, by=person, item_ids=[1])
    assert took(take(queue, entry(1), by=mate)) == [Took.ADDED]


def test_an_archived_queue_and_one_without_accounts_take_nothing(owner: User) -> None:
    with pytest.raises(NotPossibleError, match="archived"):
        take(QueueFactory.create(owner=owner, archived=True), entry(1))
    with pytest.raises(NotPossibleError, match="no account"):
        take(QueueFactory.create(owner=owner, accounts=0), entry(1))


def test_recipients_of_others_are_not_to_be_named(owner: User) -> None:
    queue, other = QueueFactory.create(owner=owner), RecipientFactory.create()
    assert took(take(queue, entry(1, address="", recipient_id=other.pk))) == [Took.REFUSED]


def test_an_account_that_is_stopped_keeps_no_other_from_sending(owner: User) -> None:
    well, ill = AccountFactory.create(owner=owner), AccountFactory.create(owner=owner, offline=True)
    queue = QueueFactory.create(owner=owner, accounts=[well, ill])
    take(queue, entry(1, sender=well.name), entry(2, sender=ill.name))
    assert item_of(queue).target.run.status == "running"
    assert item_of(queue, "row-2").target.run.pause_reason == "account_offline"


def test_states_are_read_from_targets(owner: User) -> None:
    queue = QueueFactory.create(owner=owner)
    take(queue, *(entry(n) for n in range(5)))
    now = datetime.now(UTC)
    changes: list[dict[str, Any]] = [
        {"status": "sent", "settled_at": now},
        {"status": "sent", "settled_at": now, "returned_at": now, "return_kind": "permanent"},
        {"status": "failed", "error": "No such number"},
        {"status": "unconfirmed"},
        {"status": "skipped", "error": "canceled by operator"},
    ]
    for item, change in zip(Item.objects.order_by("pk"), changes, strict=True):
        target = RunTarget.objects.filter(pk=item.target_id)
        target.update(status="sending", fence=1, claimed_at=now)
        target.update(**change)
    assert states(queue) == [
        ItemState.SENT,
        ItemState.RETURNED,
        ItemState.FAILED,
        ItemState.IN_DOUBT,
        ItemState.SKIPPED,
    ]
    assert TargetContent.objects.count() == 5


def test_an_item_whose_details_were_removed_is_not_taken_anew(owner: User) -> None:
    queue = QueueFactory.create(owner=owner)
    take(queue, entry(1))
    with connection.cursor() as cursor:  # as pruning does
        cursor.execute("DELETE FROM delivery_targetcontent; DELETE FROM delivery_runtarget")
    assert took(take(queue, entry(1), entry(1, own_id="row-2"))) == [Took.UNCHANGED, Took.ADDED]
    assert took(take(queue, entry(1, text="New"))) == [Took.BEGUN]
