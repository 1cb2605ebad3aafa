"""The admin pages of accounts and recipients: secrets, engine fields, archiving, search."""

from typing import Any

import pytest
from django.db import connection
from django.forms import ModelForm
from django.test import Client
from django.urls import reverse

from accounts.models import Account, ConsentChange, Recipient, User
from accounts.recipients import consent, search
from accounts.recipients.search import matching, with_beginnings
from tests.factories import (
    AccountFactory,
    LimitFactory,
    RecipientFactory,
    ReminderFactory,
    RunAccountFactory,
    RunTargetFactory,
    TagFactory,
)

pytestmark = pytest.mark.django_db

SECRET = "swordfish-of-the-gateway"


@pytest.fixture(autouse=True)
def _logged_in(client: Client, staff: User) -> None:
    client.force_login(staff)


@pytest.fixture
def account(owner: User) -> Account:
    return AccountFactory.create(owner=owner, credentials={"token": SECRET})


def change_url(account: Account) -> str:
    return reverse("admin:accounts_account_change", args=[account.pk])


def form(account: Account, **changed: Any) -> dict[str, Any]:
    """Return the form that a browser sends for an account's page."""
    return {
        "name": account.name,
        "profile": account.profile,
        **({"as_before": "on"} if account.as_before else {}),
        "zone": account.zone,
        "work_days": ["1", "2", "4", "8", "16", "32", "64"],
        "new_credentials": "",
        "limits-TOTAL_FORMS": 0,
        "limits-INITIAL_FORMS": 0,
        **changed,
    }


def stored(account: Account) -> dict[str, str]:
    return dict(Account.objects.get(pk=account.pk).credentials)


def test_no_page_shows_the_credentials(client: Client, account: Account) -> None:
    for url in (reverse("admin:accounts_account_changelist"), change_url(account)):
        page = client.get(url).content.decode()
        assert account.name in page
        assert SECRET not in page


def test_credentials_left_empty_are_kept(client: Client, account: Account) -> None:
    assert client.post(change_url(account), form(account, name="Renamed")).status_code == 302
    assert Account.objects.get(pk=account.pk).name == "Renamed"
    assert stored(account) == {"token": SECRET}


def test_new_credentials_replace_the_stored_ones(client: Client, account: Account) -> None:
    client.post(change_url(account), form(account, new_credentials='{"token": "fresh"}'))
    assert stored(account) == {"token": "fresh"}


@pytest.mark.parametrize("given", ["[1, 2]", '{"token": 7}', f'{{"token": "{SECRET}"', '"text"'])
def test_malformed_credentials_are_refused_and_not_shown_again(
    client: Client, account: Account, given: str
) -> None:
    answer = client.post(change_url(account), form(account, new_credentials=given))
    assert answer.status_code == 200
    assert answer.context["errors"]
    assert SECRET not in answer.content.decode()
    assert stored(account) == {"token": SECRET}


def test_an_account_whose_key_was_lost_still_has_its_pages(client: Client, account: Account) -> None:
    with connection.cursor() as cursor:
        cursor.execute("UPDATE accounts_account SET credentials = 'sealed with another key'")
    LimitFactory.create(account=account)
    RunTargetFactory.create(account=account)
    for name in ("accounts_account", "accounts_limit", "delivery_runtarget"):
        assert client.get(reverse(f"admin:{name}_changelist")).status_code == 200
    assert client.get(change_url(account)).status_code == 200
    answer = client.post(change_url(account), form(account, new_credentials='{"token": "fresh"}'))
    assert answer.status_code == 302
    assert stored(account) == {"token": "fresh"}


def test_nobody_types_what_the_engine_writes(client: Client, account: Account) -> None:
    typed = {
        "status": "flagged",
        "wake_at_0": "2030-01-01",
        "wake_at_1": "00:00",
        "waiting_for": "gap",
        "slow_factor": "9",
        "fence": "99",
        "warmup_clean_days": "50",
        "owner": account.owner.pk + 1,
    }
    before = Account.objects.filter(pk=account.pk).values().get()
    assert client.post(change_url(account), form(account, **typed)).status_code == 302
    assert Account.objects.filter(pk=account.pk).values().get() == before | {"own_address": ""}


def test_a_limit_is_set_inside_its_account(client: Client, account: Account) -> None:
    limit = {"limits-TOTAL_FORMS": 1, "limits-0-action": "message", "limits-0-per_day": 50}
    assert client.post(change_url(account), form(account, **limit)).status_code == 302
    assert account.limits.get().per_day == 50


def test_half_a_warm_up_plan_is_refused_by_the_form(client: Client, account: Account) -> None:
    answer = client.post(change_url(account), form(account, warmup_start=20))
    assert answer.status_code == 200
    assert answer.context["errors"]


def told(answer: Any) -> list[str]:
    return [str(message) for message in answer.context["messages"]]


def test_archiving_an_account_asks_first_pauses_it_and_deletes_nothing(client: Client, owner: User) -> None:
    active, busy = AccountFactory.create(owner=owner), AccountFactory.create(owner=owner, name="Busy")
    RunAccountFactory.create(account=busy)
    ReminderFactory.create(owner=owner, accounts=[active])
    chosen = {"action": "archive", "_selected_action": [active.pk, busy.pk]}
    url = reverse("admin:accounts_account_changelist")
    assert "used by 1 reminder" in client.post(url, chosen).content.decode()
    assert not Account.objects.exclude(archived_at=None).exists()
    assert told(client.post(url, chosen | {"confirmed": "yes"}, follow=True)) == [
        "Archived: 1.",
        "1 run is still open on Busy. Wait until they end, or cancel them first.",
    ]
    active.refresh_from_db()
    assert (active.status, active.archived_at is None) == ("paused", False)
    assert client.post(reverse("admin:accounts_account_delete", args=[active.pk])).status_code == 403


def test_another_plan_begins_the_warm_up_again_and_a_ceiling_alone_does_not(
    client: Client, account: Account
) -> None:
    def save(start: int, ceiling: int) -> tuple[int, bool]:
        plan = {"warmup_start": start, "warmup_step": 10, "warmup_ceiling": ceiling}
        Account.objects.update(warmup_clean_days=4, warmup_counted_on="2026-11-17")
        assert client.post(change_url(account), form(account, **plan)).status_code == 302
        account.refresh_from_db()
        return account.warmup_clean_days, account.warmup_counted_on is None

    assert save(20, 100) == (0, True)  # there was none: the days before it prove nothing
    assert save(20, 500) == (4, False)
    assert save(30, 500) == (0, False)


def test_what_is_archived_leaves_the_list_until_it_is_asked_for(client: Client, owner: User) -> None:
    url = reverse("admin:accounts_account_changelist")
    here, away = AccountFactory.create(owner=owner), AccountFactory.create(owner=owner, archived=True)
    for asked, rows in (({}, [here]), ({"archived": "yes"}, [away]), ({"archived": "all"}, [here, away])):
        assert list(client.get(url, asked).context["cl"].queryset.order_by("pk")) == rows
    client.post(url + "?archived=yes", {"action": "unarchive", "_selected_action": [away.pk]})
    assert set(client.get(url).context["cl"].queryset) == {here, away}


@pytest.fixture
def ann(owner: User) -> Recipient:
    RecipientFactory.create(owner=owner, name="Somebody else")
    return RecipientFactory.create(
        owner=owner, mailbox=True, name="Ann O'Brien", address="ann.obrien@mail.example.com"
    )


@pytest.mark.parametrize(
    "words",
    [
        "ann",
        "AN",
        "o'br",
        "ann.obrien@mail.example.com",
        "ann.obrien@ma",
        "ann.ob",
        "brien' ann\\",
        " ann \0 ",
    ],
)
def test_a_recipient_is_found_by_the_beginnings_of_its_words(ann: Recipient, words: str) -> None:
    assert list(matching(Recipient.objects.all(), words)) == [ann]


@pytest.mark.parametrize("words", ["brian", "ann bob", "ann@elsewhere", "x':*|'somebody"])
def test_a_recipient_is_not_found_by_other_words(ann: Recipient, words: str) -> None:
    assert not matching(Recipient.objects.all(), words).exists()


def test_no_words_find_every_recipient(ann: Recipient) -> None:
    assert matching(Recipient.objects.all(), "  ").count() == 2


def test_the_search_for_recipients_reads_its_index(ann: Recipient) -> None:
    with connection.cursor() as cursor:
        # In a table of one row, any other index is as good: without a condition on it, it has no bitmap.
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute("SET LOCAL enable_indexscan = off")
    assert "recipient_search" in with_beginnings(Recipient.objects.all(), ["ann"]).explain()


def test_a_search_that_finds_many_is_a_condition_and_one_that_finds_few_a_list(
    ann: Recipient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "FEW", 0)
    assert list(matching(Recipient.objects.all(), "ann")) == [ann]
    assert not matching(Recipient.objects.all(), "nobody").exists()


def test_a_phone_number_is_found_with_its_plus(owner: User) -> None:
    recipient = RecipientFactory.create(owner=owner, address="+60123456789")
    assert list(matching(Recipient.objects.all(), "+60123")) == [recipient]


@pytest.fixture
def crowd(owner: User, monkeypatch: pytest.MonkeyPatch) -> list[Recipient]:
    """Ten that count as many, all of them members."""
    for name, number in (("SAMPLE", 4), ("EARLY", 4), ("SMALL", 4)):
        monkeypatch.setattr(search, name, number)
    return [RecipientFactory.create(owner=owner, name=f"{letter} Member") for letter in "ABCDEFGHIJ"]


def test_a_word_that_most_have_is_looked_for_in_the_order_of_the_list(crowd: list[Recipient]) -> None:
    found = matching(Recipient.objects.order_by("name"), "mem")
    assert list(found) == crowd
    assert list(Recipient.objects.filter(pk__in=found.values("pk")).order_by("name")) == crowd
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
    assert "recipient_search" not in found.explain()


def test_a_word_that_few_have_is_looked_for_in_the_index_among_many(crowd: list[Recipient]) -> None:
    assert list(matching(Recipient.objects.all(), "J member")) == crowd[-1:]
    assert list(matching(Recipient.objects.all(), "nobody")) == []


def test_the_list_of_recipients_searches_and_filters_by_state(client: Client, owner: User) -> None:
    url = reverse("admin:accounts_recipient_changelist")
    out = RecipientFactory.create(owner=owner, name="Out", opted_out=True)
    cool = RecipientFactory.create(owner=owner, name="Cool", cooling_down=True)
    for asked, rows in (
        ({"q": "ou"}, [out]),
        ({"state": "cooling_down"}, [cool]),
        ({"state": "blocked"}, []),
    ):
        assert list(client.get(url, asked).context["cl"].queryset) == rows


def test_a_recipient_with_a_history_is_not_deleted(client: Client, owner: User) -> None:
    target = RunTargetFactory.create(run__reminder__owner=owner)
    url = reverse("admin:accounts_recipient_delete", args=[target.recipient.pk])
    assert "Cannot delete" in client.get(url).content.decode()
    client.post(url, {"post": "yes"})
    assert Recipient.objects.filter(pk=target.recipient.pk).exists()


def test_who_ever_opted_out_is_not_deleted_and_so_not_imported_as_somebody_new(
    client: Client, owner: User
) -> None:
    recipient = RecipientFactory.create(owner=owner)
    consent.opt_out(recipient, how="Asked on the phone.")
    url = reverse("admin:accounts_recipient_delete", args=[recipient.pk])
    assert "Cannot delete" in client.get(url).content.decode()
    client.post(url, {"post": "yes"})
    assert Recipient.objects.filter(pk=recipient.pk).exists()


def test_a_recipient_without_a_history_can_be_deleted(client: Client, owner: User) -> None:
    recipient = RecipientFactory.create(owner=owner)
    client.post(reverse("admin:accounts_recipient_delete", args=[recipient.pk]), {"post": "yes"})
    assert not Recipient.objects.exists()


def test_consent_is_not_typed(client: Client, owner: User) -> None:
    recipient = RecipientFactory.create(owner=owner, opted_out=True)
    typed = {
        "kind": "person",
        "address": recipient.address,
        "fields": "{}",
        "opted_out_at_0": "",
        "opted_out_at_1": "",
        "attempts": "2",
    }
    url = reverse("admin:accounts_recipient_change", args=[recipient.pk])
    assert client.post(url, typed).status_code == 302
    before, recipient = recipient, Recipient.objects.get(pk=recipient.pk)
    assert (recipient.opted_out_at, recipient.attempts) == (before.opted_out_at, 0)


def test_deleting_a_tag_unties_its_recipients_without_listing_them(client: Client, owner: User) -> None:
    tag = TagFactory.create(owner=owner)
    recipient = RecipientFactory.create(owner=owner, name="Tied to a tag", tags=[tag])
    url = reverse("admin:accounts_tag_delete", args=[tag.pk])
    assert "Tied to a tag" not in client.get(url).content.decode()
    assert client.post(url, {"post": "yes"}).status_code == 302
    assert not recipient.tags.exists()


@pytest.fixture
def of_recipients(client: Client) -> str:
    return reverse("admin:accounts_recipient_changelist")


def test_a_reason_opts_recipients_out_and_in_again(client: Client, owner: User, of_recipients: str) -> None:
    ann = RecipientFactory.create(owner=owner, name="Ann")
    chosen = {"action": "opt-out", "_selected_action": [ann.pk], "back_to": ann.pk}
    assert "Saved in the history with your name" in client.post(of_recipients, chosen).content.decode()
    unsaid = client.post(of_recipients, chosen | {"confirmed": "yes", "how": ""})
    assert "Fill in this field." in unsaid.content.decode()
    assert not ConsentChange.objects.exists()
    said = chosen | {"confirmed": "yes", "how": "Asked on the phone."}
    answer = client.post(of_recipients, said, follow=True)
    assert told(answer) == ["Opted out: 1."]
    assert [button.action for button in answer.context["row_actions"]] == [
        "opt-in",
        "block",
        "convert",
        "archive",
    ]
    change = ConsentChange.objects.get()
    assert (change.how, change.by) == ("Asked on the phone.", answer.context["user"])
    client.post(of_recipients, said | {"action": "opt-in"})
    ann.refresh_from_db()
    assert ann.opted_out_at is None


def test_a_stop_that_comes_while_somebody_edits_stays(
    client: Client, owner: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann = RecipientFactory.create(owner=owner, name="Ann")
    stop, check = Recipient.objects.filter(pk=ann.pk), ModelForm.is_valid

    def stopped_meanwhile(form: Any) -> bool:
        stop.update(opted_out_at="2026-11-18T09:00Z")
        return check(form)

    monkeypatch.setattr(ModelForm, "is_valid", stopped_meanwhile)
    typed = {"address": ann.address, "name": "Ann Lee", "fields": "{}"}
    answer = client.post(reverse("admin:accounts_recipient_change", args=[ann.pk]), typed)
    assert answer.status_code == 302
    ann.refresh_from_db()
    assert (ann.name, ann.opted_out_at is None) == ("Ann Lee", False)


def test_deleting_a_tag_says_off_how_many_it_is_taken(client: Client, owner: User) -> None:
    tag = TagFactory.create(owner=owner, name="Choir")
    RecipientFactory.create_batch(2, owner=owner, tags=[tag])
    page = client.get(reverse("admin:accounts_tag_delete", args=[tag.pk])).content.decode()
    assert "Choir (removed from 2 recipients)" in page
