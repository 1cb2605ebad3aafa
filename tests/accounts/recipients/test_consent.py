"""Opting out, in, blocking and converting: once, recorded, and before the next message."""

from collections.abc import Callable

import pytest
from django.core.exceptions import PermissionDenied
from django.utils import timezone
from pytest_django import DjangoCaptureOnCommitCallbacks
from redis import Redis

from accounts.models import ConsentChange, Recipient, User
from accounts.recipients import consent
from activity import counters
from tests.factories import RecipientFactory

pytestmark = pytest.mark.django_db

MOVES = [
    pytest.param(consent.opt_out, consent.opt_in, "opted_out_at", ["out", "in"], id="opt out"),
    pytest.param(consent.block, consent.unblock, "blocked_at", ["blocked", "unblocked"], id="block"),
    pytest.param(consent.convert, consent.reopen, "converted_at", ["converted", "reopened"], id="convert"),
]


def moves(recipient: Recipient) -> list[str]:
    return list(recipient.consent_changes.order_by("id").values_list("move", flat=True))


@pytest.mark.parametrize(("there", "back", "mark", "recorded"), MOVES)
def test_a_move_and_its_way_back_are_recorded_once_each(
    owner: User, there: Callable[..., bool], back: Callable[..., bool], mark: str, recorded: list[str]
) -> None:
    recipient = RecipientFactory.create(owner=owner)
    assert there(recipient, how="Asked on the phone.", by=owner)
    assert not there(recipient, how="Asked again.", by=owner)
    first = getattr(recipient, mark)
    recipient.refresh_from_db()
    assert getattr(recipient, mark) == first is not None
    assert back(recipient, how="Asked to be back.", by=owner)
    assert not back(recipient, how="And again.", by=owner)
    recipient.refresh_from_db()
    assert getattr(recipient, mark) is None
    assert moves(recipient) == recorded


def test_a_change_says_when_how_and_by_whom(owner: User) -> None:
    recipient = RecipientFactory.create(owner=owner)
    before = timezone.now()
    consent.opt_out(recipient, how="  Asked\n on the phone. ", by=owner)
    change = ConsentChange.objects.get()
    assert (change.how, change.by, change.at) == ("Asked on the phone.", owner, recipient.opted_out_at)
    assert before <= change.at <= timezone.now()


def test_a_second_opt_out_tells_the_caller_when_the_first_was() -> None:
    recipient = RecipientFactory.create()
    stale = Recipient.objects.get(pk=recipient.pk)
    consent.opt_out(recipient, how="Wrote STOP.")
    assert not consent.opt_out(stale, how="Wrote STOP.")
    assert stale.opted_out_at == recipient.opted_out_at


@pytest.mark.parametrize("how", ["", "  \n"])
def test_no_change_without_a_reason(how: str) -> None:
    recipient = RecipientFactory.create()
    with pytest.raises(ValueError, match="needs a reason"):
        consent.opt_out(recipient, how=how)
    assert moves(recipient) == []


def test_a_mate_may_and_a_reader_or_a_stranger_may_not(
    owner: User, mate: User, reader: User, stranger: User
) -> None:
    recipient = RecipientFactory.create(owner=owner)
    for person in (reader, stranger):
        with pytest.raises(PermissionDenied):
            consent.opt_out(recipient, how="Asked.", by=person)
    assert consent.opt_out(recipient, how="Asked.", by=mate)


def test_a_long_story_is_cut_and_not_refused() -> None:
    recipient = RecipientFactory.create()
    consent.opt_out(recipient, how="x" * 500)
    assert ConsentChange.objects.get().how == "x" * 200


def test_who_opted_out_is_not_reachable_until_they_opt_in() -> None:
    recipient = RecipientFactory.create()
    consent.opt_out(recipient, how="Wrote STOP.")
    assert not Recipient.objects.reachable().exists()
    consent.opt_in(recipient, how="Wrote START.", by=None)
    assert Recipient.objects.reachable().exists()


def test_each_change_is_counted_once_with_what_it_was(
    owner: User, redis: Redis, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    recipient = RecipientFactory.create(owner=owner)
    with django_capture_on_commit_callbacks(execute=True):
        consent.opt_out(recipient, how="Asked on the phone.")
        consent.opt_out(recipient, how="Asked again.")
    assert list(counters.counted()) == [("consent_changes", {"reason": "out"}, 1)]
