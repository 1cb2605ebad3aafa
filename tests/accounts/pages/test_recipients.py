"""The list of recipients, one of them with its history, and what a person may do with it."""

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from accounts.models import Recipient, User
from accounts.recipients import consent
from tests.factories import (
    AccountFactory,
    FollowUpFactory,
    InboundFactory,
    RecipientFactory,
    RunTargetFactory,
    TagFactory,
    TeamMateFactory,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def ann(owner: User) -> Recipient:
    return RecipientFactory.create(
        owner=owner, name="Ann Lee", address="+60123456789", fields={"city": "Ipoh"}
    )


@pytest.fixture
def as_owner(client: Client, owner: User) -> Client:
    client.force_login(owner)
    return client


def names(client: Client, **query: str | int) -> list[str]:
    page = client.get(reverse("recipients:list"), query).context["page"]
    return [str(recipient) for recipient in page.rows]


def url(name: str, *args: object) -> str:
    return reverse(f"recipients:{name}", args=args)


class TestTheList:
    def test_every_filter_is_in_the_address_and_they_add_up(self, as_owner: Client, owner: User) -> None:
        account, tag = AccountFactory.create(owner=owner), TagFactory.create(owner=owner)
        RecipientFactory.create(owner=owner, name="Ann", tags=[tag], account=account)
        RecipientFactory.create(owner=owner, name="Ben", opted_out=True, tags=[tag])
        RecipientFactory.create(owner=owner, name="Cy", mailbox=True)
        RecipientFactory.create(owner=owner, name="Di", archived=True)
        assert names(as_owner) == ["Ann", "Ben", "Cy"]
        assert names(as_owner, tag=tag.pk) == ["Ann", "Ben"]
        assert names(as_owner, tag=tag.pk, state="opted_out") == ["Ben"]
        assert names(as_owner, state="reachable") == ["Ann", "Cy"]
        assert names(as_owner, state="archived") == ["Di"]
        assert names(as_owner, channel="email") == ["Cy"]
        assert names(as_owner, account=account.pk) == ["Ann"]
        assert names(as_owner, q="be", tag=tag.pk) == ["Ben"]

    def test_what_is_not_understood_is_left_out(self, as_owner: Client, ann: Recipient) -> None:
        assert names(as_owner, tag="x", state="asleep", channel="pigeon", account="9" * 30) == ["Ann Lee"]

    def test_each_state_is_found_by_its_strongest_reason(self, as_owner: Client, owner: User) -> None:
        RecipientFactory.create(owner=owner, name="Out", opted_out=True, blocked=True, converted=True)
        RecipientFactory.create(owner=owner, name="Blocked", blocked=True, cooling_down=True)
        RecipientFactory.create(owner=owner, name="Cool", cooling_down=True)
        RecipientFactory.create(owner=owner, name="Cold", not_interested_at=timezone.now())
        RecipientFactory.create(owner=owner, name="Won", converted=True)
        found = {
            state: names(as_owner, state=state)
            for state in ("opted_out", "blocked", "cooling_down", "not_interested", "converted", "reachable")
        }
        assert found == {
            "opted_out": ["Out"],
            "blocked": ["Blocked"],
            "cooling_down": ["Cool"],
            "not_interested": ["Cold"],
            "converted": ["Won"],
            "reachable": [],
        }

    @pytest.mark.parametrize("text", ["+60 12-345 6789", "60123", "+60123", "0060123456789", "ann", "LEE an"])
    def test_a_search_finds_a_number_however_it_is_written(
        self, as_owner: Client, ann: Recipient, text: str
    ) -> None:
        RecipientFactory.create(owner=ann.owner, name="Somebody else", address="+60199999999")
        assert names(as_owner, q=text) == ["Ann Lee"]

    def test_a_local_number_is_looked_for_in_the_country_of_who_asks(
        self, as_owner: Client, ann: Recipient
    ) -> None:
        User.objects.update(region="MY")
        assert names(as_owner, q="012-345 6789") == ["Ann Lee"]

    def test_it_says_how_many_there_are_and_offers_to_add(self, as_owner: Client, ann: Recipient) -> None:
        text = as_owner.get(url("list"), {"q": "ann"}).content.decode()
        assert "1 recipient<" in text
        assert f'href="{url("export")}?q=ann"' in text
        assert f'href="{url("add")}"' in text

    def test_it_takes_no_more_queries_for_more_rows(
        self, as_owner: Client, owner: User, django_assert_max_num_queries: DjangoAssertNumQueries
    ) -> None:
        for _ in range(5):
            RecipientFactory.create(owner=owner, tags=[TagFactory.create(owner=owner)])
        with django_assert_max_num_queries(12):
            as_owner.get(url("list"), {"state": "reachable", "q": "recipient"})


class TestOneRecipient:
    def test_the_team_and_staff_see_it_and_a_stranger_does_not(
        self, client: Client, ann: Recipient, mate: User, reader: User, stranger: User, staff: User
    ) -> None:
        for person, status in ((ann.owner, 200), (mate, 200), (reader, 200), (staff, 200), (stranger, 404)):
            client.force_login(person)
            assert client.get(url("recipient", ann.pk)).status_code == status

    def test_a_reader_is_offered_nothing_to_press(self, client: Client, ann: Recipient, reader: User) -> None:
        client.force_login(reader)
        text = client.get(url("recipient", ann.pk)).content.decode()
        assert "Opt out" not in text
        assert url("edit", ann.pk) not in text

    def test_it_shows_messages_replies_and_consent_the_newest_first(
        self, as_owner: Client, ann: Recipient, owner: User
    ) -> None:
        RunTargetFactory.create(run__reminder__owner=owner, run__name="Rent is due", recipient=ann, sent=True)
        InboundFactory.create(account__owner=owner, recipient=ann, text="Paid!\nThanks")
        InboundFactory.create(account__owner=owner, recipient=ann, receipt=True)
        consent.opt_out(ann, how="Asked on the phone.", by=owner)
        answer = as_owner.get(url("recipient", ann.pk))
        assert [event.what for event in answer.context["history"]] == ["consent", "reply", "message"]
        assert reverse("runs:page", args=[answer.context["history"][-1].run_id]) in answer.content.decode()
        text = answer.content.decode()
        for told in (
            "Rent is due",
            "Paid!",
            "Asked on the phone.",
            "(owner)",
            "Nothing is sent until they opt in",
        ):
            assert told in text

    def test_follow_ups_to_come_are_listed(self, as_owner: Client, owner: User) -> None:
        follow_up = FollowUpFactory.create(target__run__reminder__owner=owner)
        text = as_owner.get(url("recipient", follow_up.recipient.pk)).content.decode()
        assert "Planned follow-ups" in text

    @pytest.mark.parametrize(
        ("trait", "told"),
        [
            ("blocked", "until somebody unblocks this recipient"),
            ("cooling_down", "after 3 follow-ups without a reply"),
            ("converted", "Still receives reminders"),
            ("archived", "Not in the lists"),
        ],
    )
    def test_it_says_why_it_is_or_is_not_written_to(
        self, as_owner: Client, owner: User, trait: str, told: str
    ) -> None:
        recipient = RecipientFactory.create(owner=owner, **{trait: True})
        assert told in as_owner.get(url("recipient", recipient.pk)).content.decode()

    def test_its_page_takes_no_more_queries_for_a_longer_history(
        self,
        as_owner: Client,
        ann: Recipient,
        owner: User,
        django_assert_max_num_queries: DjangoAssertNumQueries,
    ) -> None:
        for _ in range(4):
            RunTargetFactory.create(run__reminder__owner=owner, recipient=ann, sent=True)
            InboundFactory.create(account__owner=owner, recipient=ann)
        with django_assert_max_num_queries(14):
            as_owner.get(url("recipient", ann.pk))


class TestConsentByHand:
    def test_it_is_asked_for_a_reason_and_recorded(self, as_owner: Client, ann: Recipient) -> None:
        assert "until they opt in again" in as_owner.get(url("consent", ann.pk, "opt-out")).content.decode()
        assert "Fill in this field." in as_owner.post(url("consent", ann.pk, "opt-out")).content.decode()
        as_owner.post(url("consent", ann.pk, "opt-out"), {"how": "Asked on the phone."})
        assert Recipient.objects.filter(opted_out_at__isnull=False).exists()
        as_owner.post(url("consent", ann.pk, "opt-in"), {"how": "Signed up again."})
        assert Recipient.objects.filter(opted_out_at__isnull=True).exists()
        assert [change.by for change in ann.consent_changes.all()] == [ann.owner, ann.owner]

    @pytest.mark.parametrize("move", ["block", "unblock", "convert", "reopen"])
    def test_every_move_has_its_page(self, as_owner: Client, ann: Recipient, move: str) -> None:
        assert as_owner.post(url("consent", ann.pk, move), {"how": "Because."}).status_code == 302
        assert as_owner.get(url("consent", ann.pk, move)).status_code == 200
        assert as_owner.get(url("consent", ann.pk, "adopt")).status_code == 404

    def test_a_mate_may_and_a_reader_or_a_stranger_may_not(
        self, client: Client, ann: Recipient, mate: User, reader: User, stranger: User
    ) -> None:
        for person, status in ((reader, 403), (stranger, 404), (mate, 302)):
            client.force_login(person)
            assert client.post(url("consent", ann.pk, "opt-out"), {"how": "Asked."}).status_code == status


class TestByHand:
    def test_one_is_added_with_tags_and_variables(self, as_owner: Client, owner: User) -> None:
        typed = {
            "channel": "whatsapp",
            "address": "+60 12-345 6789",
            "name": "Ann",
            "tag_names": "Choir, Parents",
            "variables": "city: Ipoh\nDue date: 20 November: noon",
        }
        answer = as_owner.post(url("add"), typed)
        ann = Recipient.objects.get()
        assert answer["Location"] == url("recipient", ann.pk)
        assert (ann.owner, ann.address, ann.kind) == (owner, "+60123456789", "person")
        assert ann.fields == {"city": "Ipoh", "due_date": "20 November: noon"}
        assert {tag.name for tag in ann.tags.all()} == {"Choir", "Parents"}

    @pytest.mark.parametrize(
        ("typed", "why"),
        [
            ({"address": "call me"}, "is not a phone number"),
            ({"address": "0060123456789"}, "already exists"),
            ({"address": "+60123456780", "variables": "just words"}, "is not a variable"),
            ({"address": "+60123456780", "variables": "name: Ann"}, "has its own field"),
            ({"address": "+60123456780", "tag_names": "x" * 61}, "is longer than 60"),
        ],
    )
    def test_what_does_not_fit_is_told_next_to_its_field(
        self, as_owner: Client, ann: Recipient, typed: dict[str, str], why: str
    ) -> None:
        answer = as_owner.post(url("add"), {"channel": "whatsapp"} | typed)
        assert answer.status_code == 200
        assert why in answer.content.decode()

    def test_one_is_edited_and_keeps_its_channel_and_owner(self, as_owner: Client, ann: Recipient) -> None:
        ann.tags.add(TagFactory.create(owner=ann.owner, name="Old"))
        text = as_owner.get(url("edit", ann.pk)).content.decode()
        assert "city: Ipoh" in text
        assert "Old" in text
        typed = {
            "address": ann.address,
            "name": "Anna",
            "channel": "email",
            "tag_names": "New",
            "variables": "",
        }
        assert as_owner.post(url("edit", ann.pk), typed).status_code == 302
        ann.refresh_from_db()
        assert (ann.name, ann.channel, ann.fields) == ("Anna", "whatsapp", {})
        assert [tag.name for tag in ann.tags.all()] == ["New"]

    def test_saving_a_page_parts_no_tag_with_a_comma(self, as_owner: Client, ann: Recipient) -> None:
        for name in ("Swimming, Tuesday", "Choir"):
            ann.tags.add(TagFactory.create(owner=ann.owner, name=name))
        shown = as_owner.get(url("edit", ann.pk)).context["form"]["tag_names"].value()
        as_owner.post(url("edit", ann.pk), {"address": ann.address, "tag_names": shown})
        assert {tag.name for tag in ann.tags.all()} == {"Swimming, Tuesday", "Choir"}

    def test_a_mate_chooses_for_whom(self, client: Client, owner: User, mate: User, stranger: User) -> None:
        client.force_login(mate)
        typed = {"channel": "email", "address": "a@example.com", "owner": owner.pk}
        assert client.post(url("add"), typed).status_code == 302
        assert Recipient.objects.get().owner == owner
        assert client.post(url("add"), typed | {"owner": stranger.pk}).status_code == 200

    def test_a_reader_adds_to_their_own_alone(self, client: Client, owner: User, reader: User) -> None:
        client.force_login(reader)
        client.post(url("add"), {"channel": "email", "address": "a@example.com", "owner": owner.pk})
        assert Recipient.objects.get().owner == reader

    def test_an_account_of_somebody_else_is_not_offered(self, as_owner: Client, owner: User) -> None:
        other = AccountFactory.create()
        typed = {"channel": "whatsapp", "address": "+60123456789", "account": other.pk}
        assert as_owner.post(url("add"), typed).status_code == 200
        by_mail = AccountFactory.create(owner=owner, by_email=True)
        answer = as_owner.post(url("add"), typed | {"account": by_mail.pk})
        assert "belongs to another channel or person" in answer.content.decode()

    def test_one_is_archived_and_brought_back(self, as_owner: Client, ann: Recipient) -> None:
        as_owner.post(url("archive", ann.pk))
        assert names(as_owner) == []
        as_owner.post(url("archive", ann.pk), {"back": "1"})
        assert names(as_owner) == ["Ann Lee"]

    @pytest.mark.parametrize(("name", "status"), [("edit", 403), ("archive", 403)])
    def test_a_reader_changes_nothing(
        self, client: Client, ann: Recipient, reader: User, stranger: User, name: str, status: int
    ) -> None:
        client.force_login(reader)
        assert client.post(url(name, ann.pk)).status_code == status
        client.force_login(stranger)
        assert client.post(url(name, ann.pk)).status_code == 404


def exported(client: Client, **query: str | int) -> list[list[str]]:
    answer = client.get(url("export"), query)
    assert answer["Content-Type"] == "text/csv; charset=utf-8"
    lines = answer.getvalue().decode("utf-8-sig").splitlines()
    return [line.split(",") for line in lines]


class TestExport:
    def test_the_current_filter_is_exported_with_every_variable(
        self, as_owner: Client, ann: Recipient, owner: User
    ) -> None:
        ann.tags.add(TagFactory.create(owner=owner, name="B"), TagFactory.create(owner=owner, name="A"))
        RecipientFactory.create(owner=owner, name="Ben", fields={"age": 7}, opted_out=True)
        titles, first = exported(as_owner, q="ann")
        assert titles == [
            "address",
            "name",
            "tags",
            "channel",
            "kind",
            "state",
            "account",
            "undeliverable_for",
            "city",
        ]
        assert first == ["+60123456789", "Ann Lee", "A; B", "whatsapp", "person", "reachable", "", "", "Ipoh"]
        titles, *rows = exported(as_owner)
        assert titles[-2:] == ["age", "city"]
        assert [row[-2:] for row in rows] == [["", "Ipoh"], ["7", ""]]

    @pytest.mark.parametrize("name", ["=1+1", "+1+1", "-1+1", "@SUM(A1)", "\t=1"])
    def test_nothing_becomes_a_formula(self, as_owner: Client, owner: User, name: str) -> None:
        RecipientFactory.create(owner=owner, name=name)
        assert exported(as_owner)[1][1].startswith(("'", "\"'", "'\t"))

    def test_others_get_only_what_they_see(self, client: Client, ann: Recipient, stranger: User) -> None:
        client.force_login(stranger)
        assert len(exported(client)) == 1


def test_a_mate_who_lost_access_sees_nothing(client: Client, ann: Recipient) -> None:
    left = TeamMateFactory.create(owner=ann.owner)
    client.force_login(left.mate)
    assert client.get(url("recipient", ann.pk)).status_code == 200
    left.delete()
    assert client.get(url("recipient", ann.pk)).status_code == 404


def test_the_channel_that_is_sent_on_is_chosen_already(client: Client, owner: User) -> None:
    AccountFactory.create(owner=owner, channel="email", transport="email")
    client.force_login(owner)
    form = client.get(reverse("recipients:add")).context["form"]
    assert form["channel"].value() == "email"
    assert "" not in dict(form.fields["channel"].choices)
    refused = client.post(reverse("recipients:add"), {"channel": "", "address": "a@b.example"})
    assert refused.context["form"].errors["channel"]
