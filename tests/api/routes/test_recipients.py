"""Recipients and tags over the API."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connection

from accounts.models import ConsentChange, Recipient, Tag, User
from accounts.recipients import bulk
from accounts.recipients.bulk import Given
from api.scopes import Scope
from tests.api.program import Program, problem_of
from tests.factories import AccountFactory, OperatorFactory, RecipientFactory, ReminderFactory, TagFactory


def given(address: str, **more: object) -> dict[str, object]:
    return {"channel": "whatsapp", "address": address, **more}


def put(program: Program, *rows: dict[str, object]) -> list[dict[str, object]]:
    found: list[dict[str, object]] = program.post("/recipients", {"recipients": list(rows)})["results"]
    return found


def test_each_recipient_has_a_result_of_its_own(program: Program, owner: User) -> None:
    known = RecipientFactory.create(
        owner=owner, address="+60121112222", name="Aisyah", fields={"city": "Ipoh"}
    )
    results = put(
        program,
        given("+60 12-111 2222", fields={"class": "5B"}, tags=["Parents"]),
        given("not a number"),
        given("+60123334444", name="Ben", tags=["Parents", "Form 5"]),
        given("60121112222@c.us"),
        {"channel": "email", "address": "Ben@Example.com"},
    )
    assert [result["result"] for result in results] == ["updated", "refused", "added", "refused", "added"]
    assert "twice" in str(results[3]["detail"])
    assert results[0]["id"] == known.pk
    known.refresh_from_db()
    assert (known.name, known.fields) == ("Aisyah", {"city": "Ipoh", "class": "5B"})
    assert {tag.name: tag.recipients.count() for tag in Tag.objects.all()} == {"Parents": 2, "Form 5": 1}
    assert results[4]["address"] == "ben@example.com"


def test_an_update_opts_nobody_in_and_takes_no_name_away(program: Program, owner: User) -> None:
    known = RecipientFactory.create(owner=owner, name="Aisyah", opted_out=True, archived=True)
    put(program, given(known.address))
    known.refresh_from_db()
    assert known.name == "Aisyah"
    assert known.opted_out_at is not None
    assert known.archived_at is None
    put(program, given(known.address, name=""))
    known.refresh_from_db()
    assert known.name == ""


def test_an_account_of_somebody_else_or_of_another_channel_is_refused(program: Program, owner: User) -> None:
    wrong = (AccountFactory.create(), AccountFactory.create(owner=owner, by_email=True))
    results = put(program, *(given(f"+6012000000{n}", account=each.pk) for n, each in enumerate(wrong)))
    assert {result["result"] for result in results} == {"refused"}
    assert not Recipient.objects.exists()


def test_a_thousand_are_taken_in_few_statements_and_one_more_is_refused(
    program: Program, django_assert_max_num_queries: object
) -> None:
    rows = [given(f"+6012{n:07}", name=f"R{n}", tags=["All"]) for n in range(1001)]
    with django_assert_max_num_queries(25):  # type: ignore[operator]  # a fixture
        assert program.post("/recipients", {"recipients": rows[:1000]})["added"] == 1000
    told = problem_of(program.ask("POST", "/recipients", {"recipients": rows}))
    assert told["errors"][0]["field"] == "recipients"


@pytest.mark.django_db(transaction=True)
def test_two_lists_at_once_in_another_order_do_not_deadlock() -> None:
    owner = OperatorFactory.create()
    rows = [Given(channel="whatsapp", address=f"+6012{n:07}", tags=[f"t{n % 5}"]) for n in range(200)]

    def save(number: int) -> int:
        try:
            return len(bulk.put(owner, rows if number % 2 else rows[::-1]))
        finally:
            connection.close()

    with ThreadPoolExecutor(6) as threads:
        assert list(threads.map(save, range(6))) == [200] * 6
    assert Recipient.objects.count() == 200


def test_consent_is_changed_with_a_reason_and_recorded_with_the_person(program: Program, owner: User) -> None:
    recipient = RecipientFactory.create(owner=owner)
    told = program.post(f"/recipients/{recipient.pk}/opt-out", {"how": "Asked by phone."})
    assert (told["state"], told["opted_out_at"] is not None) == ("opted_out", True)
    change = ConsentChange.objects.get()
    assert (change.move, change.how, change.by) == ("out", "Asked by phone.", owner)
    program.post(f"/recipients/{recipient.pk}/opt-out", {"how": "Again."})
    assert ConsentChange.objects.count() == 1
    told = program.post(f"/recipients/{recipient.pk}/opt-in", {"how": "Wrote START."})
    assert told["state"] == "reachable"


@pytest.mark.parametrize("body", [{}, {"how": "  "}, {"how": ""}, {"how": "x" * 201}])
def test_consent_needs_a_reason(program: Program, owner: User, body: object) -> None:
    recipient = RecipientFactory.create(owner=owner)
    assert program.ask("POST", f"/recipients/{recipient.pk}/opt-in", body).status_code == 422


def test_one_recipient_is_changed_without_the_rest(program: Program, owner: User) -> None:
    recipient = RecipientFactory.create(
        owner=owner, name="A", fields={"city": "Ipoh"}, tags=[TagFactory.create(owner=owner)]
    )
    told = program.patch(f"/recipients/{recipient.pk}", {"tags": ["New", "Other"]})
    assert (told["name"], told["fields"], told["tags"]) == ("A", {"city": "Ipoh"}, ["New", "Other"])
    told = program.patch(f"/recipients/{recipient.pk}", {"name": "B", "fields": {}})
    assert (told["name"], told["fields"], told["tags"]) == ("B", {}, ["New", "Other"])


def test_the_list_is_filtered_by_state_tag_channel_and_words(program: Program, owner: User) -> None:
    tag = TagFactory.create(owner=owner)
    anna = RecipientFactory.create(owner=owner, name="Anna Lee", tags=[tag])
    RecipientFactory.create(owner=owner, name="Ben", opted_out=True)
    RecipientFactory.create(owner=owner, name="Cara", archived=True)
    mail = RecipientFactory.create(owner=owner, name="Dan", mailbox=True)

    def names(query: str) -> list[str]:
        return [row["name"] for row in program.get(f"/recipients?{query}")["items"]]

    assert names("") == ["Anna Lee", "Ben", "Dan"]
    assert names(f"tag={tag.pk}") == names("q=lee") == [anna.name]
    assert names("state=opted_out") == ["Ben"]
    assert names("state=archived") == ["Cara"]
    assert names("channel=email") == [mail.name]


def test_pages_by_name_show_each_row_once_though_rows_come_and_go(program: Program, owner: User) -> None:
    for n in range(7):
        RecipientFactory.create(owner=owner, name=f"R{n % 3}")  # names repeat
    seen: list[int] = []
    cursor = ""
    for step in range(10):
        told = program.get(f"/recipients?limit=2&cursor={cursor}")
        seen += [row["id"] for row in told["items"]]
        Recipient.objects.filter(pk=seen[-1]).update(archived_at="2026-01-01T00:00Z")
        RecipientFactory.create(owner=owner, name="A" if step % 2 else "R0")
        cursor = told["next_cursor"]
        if cursor is None:
            break
    assert len(seen) == len(set(seen))
    assert len(seen) >= 7


def test_tags_are_made_renamed_given_and_deleted(program: Program, owner: User) -> None:
    people = RecipientFactory.create_batch(3, owner=owner)
    stranger = RecipientFactory.create()
    tag = program.post("/tags", {"name": " Form  5 "}, status=201)
    assert tag["name"] == "Form 5"
    ids = [person.pk for person in people]
    assert program.post(f"/tags/{tag['id']}/recipients", {"add": [*ids, stranger.pk]}) == {
        "added": 3,
        "removed": 0,
    }
    assert program.post(f"/tags/{tag['id']}/recipients", {"remove": ids[:1]}) == {"added": 0, "removed": 1}
    assert problem_of(program.ask("POST", "/tags", {"name": "Form 5"}))["errors"][0]["field"] == "tags"
    program.patch(f"/tags/{tag['id']}", {"name": "Form 6"})
    assert [row["name"] for row in program.get("/tags")["items"]] == ["Form 6"]
    reminder = ReminderFactory.create(owner=owner, scheduled=True, tags=[Tag.objects.get()])
    assert str(reminder) in problem_of(program.ask("DELETE", f"/tags/{tag['id']}"))["detail"]
    reminder.delete()
    program.delete(f"/tags/{tag['id']}")
    assert Recipient.objects.filter(pk__in=ids).count() == 3


def test_an_undeliverable_recipient_says_since_when_and_why(program: Program, owner: User) -> None:
    found = RecipientFactory.create(owner=owner, undeliverable=True)
    RecipientFactory.create(owner=owner)
    shown = program.get(f"/recipients/{found.pk}")
    assert (shown["state"], shown["undeliverable_for"]) == ("undeliverable", "550 5.1.1 No such user")
    assert [each["id"] for each in program.get("/recipients?state=undeliverable")["items"]] == [found.pk]


def test_a_tag_of_a_scheduled_reminder_needs_the_scope_send_too(owner: User) -> None:
    """Whoever gives such a tag decides who gets the next message."""
    tag, other = TagFactory.create(owner=owner, name="Parents"), TagFactory.create(owner=owner, name="Other")
    anna = RecipientFactory.create(owner=owner, tags=[other])
    ReminderFactory.create(owner=owner, scheduled=True).tags.set([tag])
    manages, sends = Program(owner, [Scope.MANAGE]), Program(owner, [Scope.MANAGE, Scope.SEND])
    changes: list[tuple[str, str, Any]] = [
        ("POST", f"/tags/{tag.pk}/recipients", {"add": [anna.pk]}),
        ("PATCH", f"/recipients/{anna.pk}", {"tags": ["Other", "Parents"]}),
        ("POST", "/recipients", {"recipients": [given(anna.address, tags=["Parents"])]}),
    ]
    for method, path, body in changes:
        assert problem_of(manages.ask(method, path, body))["scope"] == "send"
        assert not tag.recipients.exists()
    for method, path, body in changes:
        assert sends.ask(method, path, body).status_code == 200
        assert list(tag.recipients.all()) == [anna]
        tag.recipients.clear()
    tag.recipients.add(anna)
    assert problem_of(manages.ask("PATCH", f"/recipients/{anna.pk}", {"tags": ["Other"]}))["scope"] == "send"
    assert manages.ask("PATCH", f"/recipients/{anna.pk}", {"tags": ["Parents", "New"]}).status_code == 200
    assert manages.ask("POST", f"/tags/{other.pk}/recipients", {"remove": [anna.pk]}).status_code == 200
