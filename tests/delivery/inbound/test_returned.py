"""Reports of one message are taken together."""

from datetime import UTC, datetime, timedelta
from functools import reduce

import pytest
from hypothesis import given
from hypothesis import strategies as st

from delivery.inbound.returned import Returned, stands_out, worse
from delivery.states import ReturnKind

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
reports = st.builds(
    Returned,
    at=st.integers(0, 5).map(lambda hours: NOON + timedelta(hours=hours)),
    kind=st.sampled_from(ReturnKind),
    reason=st.sampled_from(["", "463", "no such user", "mailbox full"]),
)


def merged(told: list[Returned]) -> Returned | None:
    return reduce(worse, told, None)


@given(
    st.lists(reports, min_size=1, max_size=6).flatmap(
        lambda told: st.tuples(st.just(told), st.permutations(told))
    )
)
def test_the_order_of_reports_does_not_matter(both: tuple[list[Returned], list[Returned]]) -> None:
    told, otherwise = both
    assert merged(told) == merged(otherwise)


@given(st.lists(reports, min_size=1, max_size=6), st.data())
def test_reports_that_come_again_change_nothing(told: list[Returned], data: st.DataObject) -> None:
    again = data.draw(st.lists(st.sampled_from(told), max_size=6))
    assert merged(told + again) == merged(told)


def test_the_earliest_time_counts_and_the_gravest_kind_with_its_reason() -> None:
    failed = Returned(at=NOON, kind=ReturnKind.TEMPORARY, reason="z")
    bounced = Returned(at=NOON + timedelta(days=1), kind=ReturnKind.PERMANENT, reason="a")
    assert worse(failed, bounced) == Returned(at=NOON, kind=ReturnKind.PERMANENT, reason="a")


@pytest.mark.parametrize(
    ("sent", "returned", "stands"),
    [
        (100, 5, False),  # exactly the share
        (100, 6, True),
        (10, 2, False),  # above the share, and too few to be news
        (10, 3, True),
        (0, 0, False),
    ],
)
def test_a_person_is_told_of_a_share_that_is_large_enough(sent: int, returned: int, stands: bool) -> None:
    assert stands_out(sent=sent, returned=returned, share=0.05, at_least=3) is stands
