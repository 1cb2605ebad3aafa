"""Rows of a table become items, each once; and nothing is withdrawn because something went wrong."""

from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone

from accounts.models import User
from activity.models import Notification
from delivery.states import TargetStatus
from queues import actions, telling
from queues.models import Item, Queue, Source, SourceRead, SourceRow
from queues.sources import manage
from queues.sources import sheets as sheets_module
from queues.sources.manage import BadSourceError
from queues.sources.mapping import Columns, MappingError, Means, Tells
from tests.factories import AccountFactory, QueueFactory
from tests.queues.sources import notion_service
from tests.queues.sources.notion_service import NotionService
from tests.queues.sources.service import Answer, Asked
from tests.queues.sources.sheets_service import SheetsService, Shown
from tests.queues.sources.table import (
    add_page,
    column,
    counts,
    fill_notion,
    fill_sheet,
    go_on,
    items,
    last_read,
    line,
    notion_source,
    problems,
    read_again,
    settle,
    sheet_source,
    texts,
    work,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("redis")]


@pytest.fixture
def queue(owner: User) -> Queue:
    return QueueFactory.create(owner=owner, by_email=True, zone="Europe/Berlin")


@pytest.fixture
def notion_table(notion: NotionService, queue: Queue, owner: User) -> Source:
    fill_notion(notion)
    return notion_source(notion, queue, by=owner)


@pytest.fixture
def sheet(sheets: SheetsService, queue: Queue, owner: User) -> Source:
    fill_sheet(sheets, line(1), line(2), line(3))
    return sheet_source(sheets, queue, by=owner)


def open_items(source: Source) -> int:
    return Item.objects.filter(queue=source.queue, source=source.key, withdrawn_at=None).count()


# Each row once.


def test_rows_of_a_notion_database_become_items(notion: NotionService, notion_table: Source) -> None:
    for n in range(1, 251):
        add_page(notion, n)
    work(notion_table)
    assert counts(notion_table) == {"rows": 250, "added": 250}
    assert len(items(notion_table)) == 250
    assert sorted(texts(notion_table))[:2] == ["Text 1", "Text 10"]
    read_again(notion_table)
    assert counts(notion_table) == {"rows": 250}
    assert len(items(notion_table)) == 250


def test_rows_of_a_sheet_become_items(
    sheets: SheetsService, sheet: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sheets_module, "PER_ANSWER", 100)
    fill_sheet(sheets, *(line(n) for n in range(1, 251)))
    work(sheet)
    assert counts(sheet) == {"rows": 250, "added": 250}
    read_again(sheet)
    assert counts(sheet) == {"rows": 250}
    assert texts(sheet) == [f"Text {n}" for n in range(1, 251)]


def test_a_sheet_that_is_sorted_or_renumbered_makes_nothing_twice(
    sheets: SheetsService, sheet: Source
) -> None:
    work(sheet)
    sheets.fill(sheets.tab.rows[0], *reversed(sheets.tab.rows[1:]))
    sheets.put(2, 1, Shown("0003.00", 3.0))
    read_again(sheet)
    assert counts(sheet) == {"rows": 3}
    assert len(items(sheet)) == 3


def test_an_edited_row_changes_its_item_until_it_has_begun(sheets: SheetsService, sheet: Source) -> None:
    work(sheet)
    settle(items(sheet)[1], TargetStatus.SENT)
    fill_sheet(sheets, line(1, Text="New one"), line(2, Text="New two"), line(3))
    read_again(sheet)
    assert counts(sheet) == {"rows": 3, "changed": 1, "begun": 1}
    assert texts(sheet) == ["New one", "Text 2", "Text 3"]
    assert "begun" in column(sheets, "Error")[1]
    assert column(sheets, "Status")[1] == "Sent"


def test_a_source_that_is_deleted_and_added_again_sends_nothing_twice(
    sheets: SheetsService, sheet: Source, queue: Queue, owner: User
) -> None:
    work(sheet)
    manage.delete(sheet, withdraw=False, by=owner)
    again = work(sheet_source(sheets, queue, by=owner))
    assert len(items(again)) == 3
    assert counts(again) == {"rows": 3}


def test_a_table_is_read_by_one_source_of_an_owner(sheets: SheetsService, sheet: Source, owner: User) -> None:
    other = QueueFactory.create(owner=owner, by_email=True)
    with pytest.raises(BadSourceError, match="sent twice"):
        sheet_source(sheets, other, by=owner)


def test_another_column_for_own_ids_is_refused_once_rows_are_known(sheet: Source, owner: User) -> None:
    work(sheet)
    schema, repeated = manage.look(sheet)
    other = Columns(reads={Means.OWN_ID: "Text", Means.ADDRESS: "To"})
    with pytest.raises(MappingError, match="sent again"):
        manage.choose_columns(sheet, other, every_minutes=5, schema=schema, repeated=repeated, by=owner)


# Wrong rows.


def test_wrong_rows_say_why_and_stop_nothing_else(sheets: SheetsService, sheet: Source) -> None:
    fill_sheet(
        sheets,
        line(1, To="nobody"),
        line(2, Send_at="tomorrow"),
        line(3, Text=Shown("#REF!", error="REF")),
        line(4, Text=""),
        line(5),
        line(6, ID=""),
        line(7, ID="twice"),
        line(8, ID="twice"),
        line(9, To=Shown("#N/A", error="N_A")),
    )
    work(sheet)
    assert [item.own_id for item in items(sheet)] == ["5"]
    found = problems(sheet)
    assert set(found) == {"1", "2", "3", "4", "9", "@7", "@8", "@9"}
    assert found["3"] == "“Text” shows the error #REF!."
    assert found["@7"] == "“ID” is empty. Give the row an id of its own."
    assert found["@8"] == "Several rows have the id “twice”. Give each its own."
    assert counts(sheet) == {"rows": 9, "added": 1, "wrong": 8}
    shown = column(sheets, "Status")
    assert shown[0] == "Not taken"
    assert shown[4] in {"Waiting", "Planned"}
    assert shown[5:8] == ["Not taken"] * 3
    assert column(sheets, "Error")[2] == "“Text” shows the error #REF!."


def test_a_row_that_is_corrected_is_taken_and_its_error_disappears(
    sheets: SheetsService, sheet: Source
) -> None:
    fill_sheet(sheets, line(1, To="nobody"), line(2, ID=""))
    work(sheet)
    assert column(sheets, "Error")[0]
    sheets.put(2, 2, "p1@example.com")
    sheets.put(3, 1, 2)
    read_again(sheet)
    assert [item.own_id for item in items(sheet)] == ["1", "2"]
    assert problems(sheet) == {}
    assert column(sheets, "Error") == ["", ""]
    assert column(sheets, "Status") == ["Waiting", "Waiting"]


def test_half_characters_are_left_out(sheets: SheetsService, sheet: Source) -> None:
    fill_sheet(sheets, line(1, Text="Grüße \ud83d and \0 nothing", Status="\ud83d"))
    work(sheet)
    assert texts(sheet) == ["Grüße ? and  nothing"]
    assert column(sheets, "Status") == ["Waiting"]


def test_a_fault_of_ours_lets_the_source_rest(sheet: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(actions, "put", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        work(sheet)
    sheet.refresh_from_db()
    assert sheet.trouble == "Something went wrong on our side. The log has the details."
    assert sheet.retry_at is not None
    assert work(sheet).failures == 1


def test_an_edit_that_makes_a_row_wrong_leaves_its_item_and_says_so(
    sheets: SheetsService, sheet: Source
) -> None:
    work(sheet)
    sheets.put(2, 2, "nobody")
    read_again(sheet)
    assert open_items(sheet) == 3
    assert problems(sheet)["1"].endswith("The item stays as it was.")
    assert column(sheets, "Status")[0] == "Waiting"


def test_an_emptied_row_leaves_its_item(sheets: SheetsService, sheet: Source) -> None:
    work(sheet)
    for place in (2, 3, 4):
        sheets.put(2, place, "")
    read_again(sheet)
    assert open_items(sheet) == 3
    assert "delete the row" in problems(sheet)["1"]


def test_of_two_pages_with_one_own_id_the_older_is_taken(
    notion: NotionService, queue: Queue, owner: User
) -> None:
    fill_notion(notion)
    ids = {name: notion.named(name).id for name in ("Name", "Address", "Subject", "Text")}
    columns = Columns(
        reads={
            Means.OWN_ID: ids["Name"],
            Means.ADDRESS: ids["Address"],
            Means.SUBJECT: ids["Subject"],
            Means.TEXT: ids["Text"],
        },
        titles={key: name for name, key in ids.items()},
    )
    first = add_page(notion, 1, Name="A")
    source = work(notion_source(notion, queue, by=owner, columns=columns))
    add_page(notion, 2, Name="A")
    for _ in range(3):
        read_again(source)
    assert texts(source) == ["Text 1"]
    assert list(problems(source).values()) == ["Several rows have the id “A”. Give each its own."]
    notion.trash(first)
    read_again(source)
    assert texts(source) == ["Text 2"]
    assert len(items(source)) == 1


def test_only_rows_that_are_ready_are_taken(notion: NotionService, queue: Queue, owner: User) -> None:
    fill_notion(notion)
    notion.add_property("Ready", "checkbox")
    source = notion_source(notion, queue, by=owner)
    page = add_page(notion, 1)
    work(source)
    assert items(source) == []
    assert counts(source) == {"rows": 1, "not_ready": 1}
    notion.edit(page, Ready=True)
    read_again(source)
    assert open_items(source) == 1
    notion.edit(page, Ready=False)
    read_again(source)
    assert open_items(source) == 0
    assert notion.shown(page, "Status") == "Withdrawn"
    notion.edit(page, Ready=True)
    read_again(source)
    assert open_items(source) == 1


# Times.


def test_times_are_read_in_the_zone_of_their_table(sheets: SheetsService, sheet: Source) -> None:
    fill_sheet(
        sheets,
        line(1, Send_at=Shown("3/4/2026 9:00", 46115.375)),
        line(2, Send_at="2026-04-03 09:00"),
        line(3, Send_at="2026-04-03T09:00+00:00"),
        line(4, Send_at="3/4/2026"),
    )
    work(sheet)
    found = [item.planned_at for item in items(sheet)]
    nine_there = datetime(2026, 4, 3, 1, 0, tzinfo=UTC)
    assert found == [nine_there, nine_there, datetime(2026, 4, 3, 9, 0, tzinfo=UTC)]
    assert set(problems(sheet)) == {"4"}


def test_times_of_notion_are_read_in_the_zone_of_the_queue(
    notion: NotionService, notion_table: Source
) -> None:
    add_page(notion, 1, Send_at="2026-04-03T09:00:00.000+08:00")
    add_page(notion, 2, Send_at="2026-04-03")
    add_page(notion, 3, Send_at={"start": "2026-04-03T09:00:00.000", "end": None, "time_zone": "Asia/Tokyo"})
    work(notion_table)
    found = {item.recipient.address: item.planned_at for item in items(notion_table)}
    assert found["p1@example.com"] == datetime(2026, 4, 3, 1, 0, tzinfo=UTC)
    assert found["p2@example.com"] == datetime(2026, 4, 2, 22, 0, tzinfo=UTC)
    assert found["p3@example.com"] == datetime(2026, 4, 3, 0, 0, tzinfo=UTC)


# Deleted rows, and faults that look like them.


def test_a_deleted_row_withdraws_its_item_when_two_reads_did_not_find_it(
    sheets: SheetsService, sheet: Source
) -> None:
    work(sheet)
    del sheets.tab.rows[2]
    read_again(sheet)
    assert open_items(sheet) == 3
    assert counts(sheet) == {"rows": 2, "missing": 1}
    sheet.refresh_from_db()
    assert sheet.next_read_at is not None
    assert sheet.next_read_at <= timezone.now() + timedelta(seconds=30)
    read_again(sheet)
    assert open_items(sheet) == 2
    assert counts(sheet) == {"rows": 2, "missing": 1, "withdrawn": 1}


def test_a_deleted_page_withdraws_its_item(notion: NotionService, notion_table: Source) -> None:
    pages = [add_page(notion, n) for n in range(3)]
    work(notion_table)
    notion.trash(pages[1])
    read_again(notion_table)
    read_again(notion_table)
    assert open_items(notion_table) == 2


def test_a_row_that_was_only_moved_for_a_moment_is_not_withdrawn(
    sheets: SheetsService, sheet: Source
) -> None:
    work(sheet)
    cut = sheets.tab.rows.pop(2)
    read_again(sheet)
    sheets.tab.rows.append(cut)
    for _ in range(2):
        read_again(sheet)
    assert open_items(sheet) == 3
    assert not SourceRow.objects.filter(missing_since__isnull=False).exists()


def test_a_row_that_comes_back_is_taken_again(sheets: SheetsService, sheet: Source) -> None:
    work(sheet)
    cut = sheets.tab.rows.pop(2)
    for _ in range(2):
        read_again(sheet)
    assert open_items(sheet) == 2
    sheets.tab.rows.append(cut)
    read_again(sheet)
    assert open_items(sheet) == 3
    assert len(items(sheet)) == 3


def test_a_deleted_row_whose_message_was_sent_stays_sent(sheets: SheetsService, sheet: Source) -> None:
    work(sheet)
    settle(items(sheet)[1], TargetStatus.SENT)
    del sheets.tab.rows[2]
    for _ in range(3):
        read_again(sheet)
    assert [told.state for told in telling.as_they_are([item.pk for item in items(sheet)]).values()] == [
        "waiting",
        "sent",
        "waiting",
    ]


def test_an_empty_table_withdraws_nothing_until_a_person_confirms(
    sheets: SheetsService, sheet: Source, owner: User
) -> None:
    work(sheet)
    fill_sheet(sheets)
    for _ in range(4):
        read_again(sheet)
    sheet.refresh_from_db()
    assert open_items(sheet) == 3
    assert sheet.missing == 3
    assert manage.withdraw_missing(sheet, by=owner) == 3
    assert open_items(sheet) == 0


def test_when_most_rows_are_missing_nothing_is_withdrawn(notion: NotionService, notion_table: Source) -> None:
    pages = [add_page(notion, n) for n in range(60)]
    work(notion_table)
    for page in pages[:40]:
        notion.trash(page)
    for _ in range(3):
        read_again(notion_table)
    notion_table.refresh_from_db()
    assert (open_items(notion_table), notion_table.missing) == (60, 40)
    for page in pages[:40]:
        page.in_trash = False
    read_again(notion_table)
    notion_table.refresh_from_db()
    assert (open_items(notion_table), notion_table.missing) == (60, 0)


@pytest.mark.parametrize(
    "answer",
    [
        notion_service.rate_limited(30),
        notion_service.unavailable(),
        notion_service.refusal(401, "unauthorized", "API token is invalid."),
        notion_service.refusal(404, "object_not_found", "Could not find it."),
        Answer(body={"object": "list"}),
        Answer(body={"object": "list", "results": [], "has_more": False}),
        Answer(body={"object": "list", "results": []}, cut=True),
        Answer(raw=b""),
    ],
)
def test_no_fault_withdraws_anything(notion: NotionService, notion_table: Source, answer: Answer) -> None:
    for n in range(120):
        add_page(notion, n)
    work(notion_table)
    notion.spoil(lambda asked: answer if asked.path.endswith("/query") else None)
    for _ in range(4):
        Source.objects.update(stopped_at=None)
        read_again(notion_table)
    assert open_items(notion_table) == 120


def test_a_half_read_withdraws_nothing_and_goes_on_where_it_was(
    notion: NotionService, notion_table: Source
) -> None:
    for n in range(250):
        add_page(notion, n)
    work(notion_table)
    before = notion.count("POST", "query")

    def second_portion(asked: Asked) -> Answer | None:
        return notion_service.rate_limited(20) if "start_cursor" in asked.json() else None

    for let in (read_again, go_on, go_on):
        notion.spoil(second_portion, times=1)
        let(notion_table)
        notion_table.refresh_from_db()
        assert notion_table.retry_at is not None
        assert last_read(notion_table).outcome == SourceRead.Outcome.READING
    assert open_items(notion_table) == 250
    notion.heal()
    go_on(notion_table)
    assert last_read(notion_table).outcome == SourceRead.Outcome.DONE
    assert counts(notion_table) == {"rows": 250}
    # The first portion was not read again: two for the second, which was refused three times, and the third.
    assert notion.count("POST", "query") - before == 1 + 3 + 2


def test_a_read_that_lost_its_place_begins_again(notion: NotionService, notion_table: Source) -> None:
    pages = [add_page(notion, n) for n in range(250)]
    notion.spoil(
        lambda asked: notion_service.unavailable() if "start_cursor" in asked.json() else None, times=1
    )
    work(notion_table)
    cursor = last_read(notion_table).cursor
    page = next(each for each in pages if each.id == cursor["behind"])
    notion.trash(page)
    read_again(notion_table)
    assert last_read(notion_table).outcome == SourceRead.Outcome.DONE
    assert open_items(notion_table) == 249


# Faults that a person has to repair.


def test_a_revoked_token_stops_the_source_and_a_new_one_lets_it_go_on(
    notion: NotionService, notion_table: Source, owner: User
) -> None:
    add_page(notion, 1)
    work(notion_table)
    notion.token = "ntn_new"
    read_again(notion_table)
    notion_table.refresh_from_db()
    assert notion_table.stopped_at is not None
    assert "revoked" in notion_table.stopped_why
    told = Notification.objects.get()
    assert "“Mails”" in told.body
    read_again(notion_table)
    assert Notification.objects.count() == 1
    assert open_items(notion_table) == 1
    with pytest.raises(BadSourceError, match="refuses the token"):
        manage.renew_access(notion_table, "ntn_wrong", by=owner)
    add_page(notion, 2)
    manage.renew_access(notion_table, "ntn_new", by=owner)
    work(notion_table)
    assert open_items(notion_table) == 2


def test_a_column_that_disappears_stops_the_source_with_its_name(
    sheets: SheetsService, sheet: Source, owner: User
) -> None:
    work(sheet)
    sheets.put(1, 4, "Body")
    read_again(sheet)
    assert sheet.stopped_why == (
        "The column “Text” is gone or has another name. Rename it, or choose another one."
    )
    assert open_items(sheet) == 3
    sheets.put(1, 4, "Text")
    manage.try_again(sheet, by=owner)
    work(sheet)
    assert sheet.stopped_at is None
    assert counts(sheet) == {"rows": 3}


def test_a_property_that_is_only_renamed_stops_nothing(notion: NotionService, notion_table: Source) -> None:
    add_page(notion, 1)
    work(notion_table)
    notion.rename_property("Text", "Body")
    read_again(notion_table)
    assert notion_table.stopped_at is None
    assert texts(notion_table) == ["Text 1"]


def test_a_property_whose_type_was_changed_stops_the_source(
    notion: NotionService, notion_table: Source
) -> None:
    add_page(notion, 1)
    work(notion_table)
    notion.named("Planned for").type = "checkbox"
    read_again(notion_table)
    assert "whose type was changed" in notion_table.stopped_why


def test_two_columns_with_one_title_stop_the_source(sheets: SheetsService, sheet: Source) -> None:
    sheets.put(1, 12, "Text")
    work(sheet)
    assert sheet.stopped_why == "Several columns are called “Text”. Give each its own title."
    assert items(sheet) == []


def test_a_queue_without_an_account_lets_the_source_wait(sheet: Source, queue: Queue) -> None:
    queue.queue_accounts.all().delete()
    work(sheet)
    assert "no account" in sheet.trouble
    queue.queue_accounts.create(account=AccountFactory.create(owner=queue.owner, channel="email"))
    read_again(sheet)
    assert len(items(sheet)) == 3
    assert sheet.trouble == ""


def test_a_source_that_fails_for_an_hour_is_told_once(notion: NotionService, notion_table: Source) -> None:
    notion.spoil(lambda _: notion_service.unavailable())
    read_again(notion_table)
    assert not Notification.objects.exists()
    Source.objects.update(failing_since=timezone.now() - timedelta(hours=2))
    for _ in range(3):
        read_again(notion_table)
    assert Notification.objects.get().title == "A source cannot be read"


# What people do.


def test_a_person_who_withdrew_an_item_is_obeyed(sheets: SheetsService, sheet: Source, owner: User) -> None:
    work(sheet)
    actions.withdraw(sheet.queue, by=owner, item_ids=[items(sheet)[0].pk])
    sheets.put(2, 4, "Another text")
    read_again(sheet)
    assert open_items(sheet) == 2
    assert column(sheets, "Status")[0] == "Withdrawn"


def test_a_source_that_is_switched_off_is_not_asked(
    sheets: SheetsService, sheet: Source, owner: User
) -> None:
    manage.switch_off(sheet, by=owner)
    asked = len(sheets.asked)
    read_again(sheet)
    assert len(sheets.asked) == asked
    manage.switch_on(sheet, by=owner)
    work(sheet)
    assert len(items(sheet)) == 3


def test_deleting_a_source_can_withdraw_what_waits(sheet: Source, owner: User) -> None:
    work(sheet)
    settle(items(sheet)[0], TargetStatus.SENT)
    assert manage.waiting_items(sheet) == 2
    assert manage.delete(sheet, withdraw=True, by=owner) == 2
    assert not Source.objects.exists()


def test_a_read_row_whose_item_was_removed_is_not_sent_again(sheets: SheetsService, sheet: Source) -> None:
    work(sheet)
    SourceRow.objects.filter(own_id="1").update(item=None)
    sheets.put(2, 4, "Another text")
    read_again(sheet)
    assert counts(sheet) == {"rows": 3, "wrong": 1}
    assert "ended long ago" in problems(sheet)["1"]


def test_a_mapping_without_what_it_needs_is_refused(sheet: Source, owner: User) -> None:
    schema, repeated = manage.look(sheet)
    for columns, words in (
        (Columns(reads={Means.ADDRESS: "To"}), "id of its own"),
        (Columns(reads={Means.OWN_ID: "ID"}), "address of the recipient"),
        (Columns(reads={Means.OWN_ID: "ID", Means.ADDRESS: "ID"}), "chosen twice"),
        (
            Columns(reads={Means.OWN_ID: "ID", Means.ADDRESS: "To"}, tells={Tells.STATUS: "To"}),
            "chosen twice",
        ),
        (Columns(reads={Means.OWN_ID: "ID", Means.ADDRESS: "Nowhere"}), "is gone"),
    ):
        with pytest.raises(MappingError, match=words):
            manage.choose_columns(sheet, columns, every_minutes=5, schema=schema, repeated=repeated, by=owner)


def test_a_status_property_needs_the_words_that_are_written(
    notion: NotionService, notion_table: Source, owner: User
) -> None:
    notion.add_property("State", "status", ["Sent"])
    schema, repeated = manage.look(notion_table)
    columns = Columns(
        reads={Means.ADDRESS: notion.named("Address").id}, tells={Tells.STATUS: notion.named("State").id}
    )
    with pytest.raises(MappingError, match="lacks the options Failed"):
        manage.choose_columns(
            notion_table, columns, every_minutes=5, schema=schema, repeated=repeated, by=owner
        )
