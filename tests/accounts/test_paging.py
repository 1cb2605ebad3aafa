"""Walking through pages shows every row once, in order, both ways."""

from typing import Any

import pytest

from accounts import paging
from accounts.models import Recipient, Tag, User
from accounts.paging import page_of
from accounts.recipients import tags
from activity.templatetags.paceline import thousands
from tests.factories import RecipientFactory, TagFactory

NAMES = ["b", "a", "c", "a", "b", "b", "d"]


@pytest.fixture
def rows(owner: User) -> list[Recipient]:
    return [RecipientFactory.create(owner=owner, name=name) for name in NAMES]


def walk(*, by: str, newest_first: bool) -> tuple[list[int], list[int]]:
    """The ids seen on the way forth, and those seen on the way back."""
    address: dict[str, str] = {}
    forth: list[int] = []
    while True:
        page = page_of(Recipient.objects.all(), address, by=by, newest_first=newest_first, size=2)
        forth += [row.pk for row in page.rows]
        if page.after is None:
            break
        address = {"after": str(page.after)}
    back = [row.pk for row in page.rows]
    while page.before is not None:
        address = {"before": str(page.before)}
        page = page_of(Recipient.objects.all(), address, by=by, newest_first=newest_first, size=2)
        back = [row.pk for row in page.rows] + back
    return forth, back


def test_pages_by_name_show_every_row_once_in_order_forth_and_back(rows: list[Recipient]) -> None:
    ordered = [row.pk for row in sorted(rows, key=lambda row: (row.name, row.pk))]
    forth, back = walk(by="name", newest_first=False)
    assert forth == ordered
    assert back == ordered


def test_pages_from_the_newest_show_every_row_once_in_order_forth_and_back(rows: list[Recipient]) -> None:
    ordered = sorted((row.pk for row in rows), reverse=True)
    forth, back = walk(by="id", newest_first=True)
    assert forth == ordered
    assert back == ordered


@pytest.mark.parametrize("anchor", ["", "x", "-1", "999999999", "9" * 40, "²"])
def test_an_anchor_that_is_no_row_shows_the_first_page(rows: list[Recipient], anchor: str) -> None:
    page = page_of(Recipient.objects.all(), {"after": anchor}, by="name")
    assert len(page.rows) == len(NAMES)
    assert page.before is None
    assert page.after is None


@pytest.mark.django_db
def test_a_size_is_counted_as_far_as_a_page_shows_it(
    owner: User, monkeypatch: pytest.MonkeyPatch, django_assert_num_queries: Any
) -> None:
    monkeypatch.setattr(paging, "MOST_SHOWN", 3)
    small, large = TagFactory.create(owner=owner, name="a"), TagFactory.create(owner=owner, name="b")
    for number in range(5):
        RecipientFactory.create(owner=owner).tags.add(*([small, large] if number < 3 else [large]))
    with django_assert_num_queries(1):
        found = list(tags.with_sizes(Tag.objects.order_by("name")))
    tags.show_sizes(found)
    sizes: list[int] = [vars(tag)["size"] for tag in found]
    assert [thousands(size) for size in sizes] == ["3", "3+"]
    assert [str(tags.size(tag)) for tag in found] == ["3", "3+"]
