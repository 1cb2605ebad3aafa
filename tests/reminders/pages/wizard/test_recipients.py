"""The second step: accounts, tags, ticks, all that match, and who is left out and why."""

import pytest
from django.test import Client
from django.urls import reverse
from pytest_django import DjangoAssertNumQueries

from accounts.models import Account, User
from accounts.models.account import Channel
from reminders import headcount
from reminders.models import Reminder
from tests.factories import AccountFactory, RecipientFactory, ReminderFactory, TagFactory


@pytest.fixture
def logged_in(client: Client, owner: User) -> Client:
    client.force_login(owner)
    return client


@pytest.fixture
def account(owner: User) -> Account:
    return AccountFactory.create(owner=owner)


@pytest.fixture
def draft(owner: User, account: Account) -> Reminder:
    return ReminderFactory.create(owner=owner, accounts=[account])


def url(reminder: Reminder) -> str:
    return reverse("reminders:recipients", args=[reminder.pk])


def chosen(reminder: Reminder) -> set[str]:
    return set(reminder.recipients.values_list("name", flat=True))


def form(account: Account, **values: object) -> dict[str, object]:
    return {"account": account.pk, "do": "tick", **values}


def test_ticks_of_the_rows_on_the_screen_are_saved_and_the_rest_stays(
    logged_in: Client, draft: Reminder, account: Account, owner: User
) -> None:
    anna, ben, cleo, dan = (RecipientFactory.create(owner=owner, name=name) for name in "ABCD")
    draft.recipients.set([ben, dan])
    logged_in.post(url(draft), form(account, shown=[anna.pk, ben.pk, cleo.pk], pick=[anna.pk, cleo.pk]))
    assert chosen(draft) == {"A", "C", "D"}


def test_all_that_match_a_search_are_chosen_by_one_button(
    logged_in: Client, draft: Reminder, account: Account, owner: User
) -> None:
    RecipientFactory.create_batch(30, owner=owner, name="Parents of class 4")
    RecipientFactory.create(owner=owner, name="Teachers")
    RecipientFactory.create(name="Parents of somebody else")
    page = logged_in.get(url(draft), {"q": "parents"}).content.decode()
    assert "Choose all 30 found" in page
    data = form(account, applied_q="parents", matching=30, do="all")
    response = logged_in.post(url(draft), data, follow=True)
    assert draft.recipients.count() == 30
    assert "30 added" in response.content.decode()
    assert response.context["applied"]["q"] == "parents"
    logged_in.post(url(draft), form(account, applied_q="parents", matching=30, do="none"))
    assert draft.recipients.count() == 0


def test_a_filter_by_tag_narrows_the_list_and_what_all_means(
    logged_in: Client, draft: Reminder, account: Account, owner: User
) -> None:
    tag = TagFactory.create(owner=owner)
    RecipientFactory.create(owner=owner, name="Tagged", tags=[tag])
    RecipientFactory.create(owner=owner, name="Plain")
    logged_in.post(url(draft), form(account, applied_with=str(tag.pk), matching=1, do="all"))
    assert chosen(draft) == {"Tagged"}


@pytest.mark.parametrize("verb", ["all", "none"])
def test_all_never_means_another_list_than_the_one_that_is_shown(
    logged_in: Client, draft: Reminder, account: Account, owner: User, verb: str
) -> None:
    """Somebody changed a filter and pressed the button of the old list, without JavaScript."""
    RecipientFactory.create_batch(2, owner=owner, name="Parents")
    teacher = RecipientFactory.create(owner=owner, name="Teachers")
    before = {str(teacher)} if verb == "none" else set()
    draft.recipients.set([teacher] if before else [])
    page = logged_in.post(url(draft), form(account, q="parents", matching=3, do=verb))
    assert chosen(draft) == before
    assert "The filter was changed after this list was shown." in page.content.decode()
    assert [row.name for row in page.context["page"].rows] == ["Parents", "Parents"]
    assert page.context["applied"]["q"] == "parents"


def test_all_is_refused_where_the_list_has_another_number_by_then(
    logged_in: Client, draft: Reminder, account: Account, owner: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(headcount, "KEPT_ABOVE", 1)  # a long list is counted once in a minute
    RecipientFactory.create_batch(2, owner=owner, name="Parents")
    shown = logged_in.get(url(draft)).content.decode()
    assert '<input type="hidden" name="matching" value="2">' in shown
    RecipientFactory.create(owner=owner, name="Parents")
    page = logged_in.post(url(draft), form(account, matching=2, do="all"))
    assert not draft.recipients.exists()
    assert "The list has changed: it has 3 now." in page.content.decode()
    assert '<input type="hidden" name="matching" value="3">' in page.content.decode()
    logged_in.post(url(draft), form(account, matching=3, do="all"))
    assert draft.recipients.count() == 3


def test_to_untick_one_of_the_chosen_and_remove_all_others_works_at_once(
    logged_in: Client, draft: Reminder, account: Account, owner: User
) -> None:
    anna, ben = (RecipientFactory.create(owner=owner, name=name) for name in "AB")
    draft.recipients.set([anna, ben])
    said = form(account, show="chosen", shown=[anna.pk, ben.pk], pick=[ben.pk], matching=2, do="none")
    logged_in.post(url(draft), said)
    assert chosen(draft) == set()


def test_a_tag_is_chosen_and_counted_now_and_again_when_it_fires(
    logged_in: Client, draft: Reminder, account: Account, owner: User
) -> None:
    tag, foreign = TagFactory.create(owner=owner, name="Everyone"), TagFactory.create()
    RecipientFactory.create_batch(3, owner=owner, tags=[tag], group=True)
    page = logged_in.post(url(draft), form(account, tag=[tag.pk, foreign.pk, "x"]), follow=True)
    assert list(draft.tags.all()) == [tag]
    assert "3 groups" in page.content.decode()


def test_the_excluded_are_listed_with_their_reason(
    logged_in: Client, draft: Reminder, account: Account, owner: User
) -> None:
    other = AccountFactory.create(owner=owner)
    draft.recipients.set(
        [
            RecipientFactory.create(owner=owner, name="Out", opted_out=True),
            RecipientFactory.create(owner=owner, name="Blocked", blocked=True),
            RecipientFactory.create(owner=owner, name="Elsewhere", account=other),
            RecipientFactory.create(owner=owner, name="Letter", mailbox=True),
            RecipientFactory.create(owner=owner, name="Fine"),
        ]
    )
    response = logged_in.get(url(draft), {"show": "excluded"})
    found = {row.name: row.refused for row in response.context["page"].rows}
    assert found == {
        "Out": "opted out",
        "Blocked": "blocked",
        "Elsewhere": "reached only by another account",
        "Letter": "on another channel",
    }
    assert dict(response.context["audience"].refused) == dict.fromkeys(found.values(), 1)


def test_accounts_decide_the_channel_and_the_action(logged_in: Client, draft: Reminder, owner: User) -> None:
    mail = AccountFactory.create(owner=owner, by_email=True)
    logged_in.post(url(draft), form(mail))
    draft.refresh_from_db()
    assert (draft.channel, draft.action) == (Channel.EMAIL, "email")
    linkedin = AccountFactory.create(owner=owner, channel=Channel.LINKEDIN, profile="linkedin")
    logged_in.post(url(draft), form(linkedin, action="inmail"))
    draft.refresh_from_db()
    assert (draft.channel, draft.action) == (Channel.LINKEDIN, "inmail")


def test_accounts_of_two_channels_are_refused_and_what_was_ticked_stays(
    logged_in: Client, draft: Reminder, account: Account, owner: User
) -> None:
    mail = AccountFactory.create(owner=owner, by_email=True)
    anna = RecipientFactory.create(owner=owner, name="A")
    data = {"account": [account.pk, mail.pk], "shown": anna.pk, "pick": anna.pk, "do": "continue"}
    page = logged_in.post(url(draft), data)
    assert "goes out on one channel" in page.content.decode()
    assert page.context["picked"] == [account.pk, mail.pk]
    assert chosen(draft) == {"A"}
    assert list(draft.accounts.all()) == [account]


def test_somebody_elses_account_and_recipient_cannot_be_named(
    logged_in: Client, draft: Reminder, account: Account
) -> None:
    theirs, secret = AccountFactory.create(), RecipientFactory.create()
    data = {"account": [account.pk, theirs.pk], "shown": secret.pk, "pick": secret.pk, "do": "tick"}
    logged_in.post(url(draft), data)
    assert list(draft.accounts.all()) == [account]
    assert not draft.recipients.exists()


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"account": []}, "Choose an account to send from"),
        ({}, "Choose a tag, or at least one recipient"),
    ],
)
def test_without_a_sender_or_a_recipient_it_does_not_go_on(
    logged_in: Client, draft: Reminder, account: Account, given: dict[str, object], why: str
) -> None:
    assert why in logged_in.post(url(draft), form(account, do="continue") | given).content.decode()


def test_continue_and_back_save_and_lead_to_their_steps(
    logged_in: Client, draft: Reminder, account: Account, owner: User
) -> None:
    anna = RecipientFactory.create(owner=owner)
    data = form(account, shown=anna.pk, pick=anna.pk)
    onward = logged_in.post(url(draft), data | {"do": "continue"})
    assert onward["Location"] == reverse("reminders:when", args=[draft.pk])
    back = logged_in.post(url(draft), data | {"do": "back"})
    assert back["Location"] == reverse("reminders:message", args=[draft.pk])


@pytest.mark.parametrize(
    ("data", "address"),
    [
        ({"do": "search", "q": " ann ", "with": "7"}, "?q=ann&with=7"),
        ({"do": "show-chosen", "applied_q": "ann"}, "?q=ann&show=chosen"),
        ({"do": "after-12", "applied_q": "ann"}, "?q=ann&after=12"),
        ({"do": "before-12"}, "?before=12"),
        ({"do": "clear", "applied_q": "ann", "applied_with": "3"}, ""),
    ],
)
def test_where_one_looks_is_in_the_address(
    logged_in: Client, draft: Reminder, account: Account, data: dict[str, str], address: str
) -> None:
    response = logged_in.post(url(draft), form(account, **data))
    assert response["Location"] == url(draft) + address


def test_a_scheduled_reminder_keeps_an_account_and_a_recipient(
    logged_in: Client, owner: User, account: Account
) -> None:
    anna = RecipientFactory.create(owner=owner, name="A")
    reminder = ReminderFactory.create(owner=owner, scheduled=True, accounts=[account], recipients=[anna])
    assert "needs recipients" in logged_in.post(url(reminder), form(account, shown=anna.pk)).content.decode()
    assert chosen(reminder) == {"A"}
    page = logged_in.post(url(reminder), {"shown": anna.pk, "pick": anna.pk, "do": "save"})
    assert "needs an account" in page.content.decode()
    assert list(reminder.accounts.all()) == [account]


@pytest.mark.parametrize("address", ["", "?show=chosen", "?show=excluded", "?q=recipient"])
def test_the_page_takes_as_many_queries_for_many_recipients(
    logged_in: Client,
    draft: Reminder,
    owner: User,
    address: str,
    django_assert_max_num_queries: DjangoAssertNumQueries,
) -> None:
    tags = TagFactory.create_batch(3, owner=owner)
    people = RecipientFactory.create_batch(40, owner=owner, tags=tags)
    draft.recipients.set(people)
    draft.tags.set(tags)
    AccountFactory.create_batch(4, owner=owner)
    with django_assert_max_num_queries(36):
        assert logged_in.get(url(draft) + address).status_code == 200
