import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from delivery.limits.effective import GROUPS, Effective, Source, Values, effective
from delivery.pacing import LONG_SPANS

modestly = settings(max_examples=200, deadline=None)
caps = st.none() | st.integers(1, 100_000)
pairs = st.none() | st.tuples(st.floats(0, 3600), st.floats(0, 3600)).map(sorted)
batches = st.none() | st.tuples(st.integers(1, 500), st.floats(1, 600))


@st.composite
def values(draw: st.DrawFn) -> Values:
    """Generate the values of one source, some of them missing."""
    gap, batch = draw(pairs) or (None, None), draw(batches) or (None, None)
    return {
        "per_minute": draw(caps),
        "per_hour": draw(caps),
        "per_day": draw(caps),
        **{name: draw(caps) for name in (*LONG_SPANS, "new_per_day", "new_per_week")},
        "gap_min": gap[0],
        "gap_max": gap[1],
        "batch_size": batch[0],
        "batch_pause": batch[1],
    }


def first_said(name: str, *sources: Values) -> float | None:
    return next((value for each in sources if (value := each[name]) is not None), None)


@modestly
@given(values(), values(), values())
def test_the_account_goes_before_its_profile_and_that_before_the_settings(
    own: Values, profile: Values, said: Values
) -> None:
    found = effective(account=own, profile=profile, settings=said)
    for name in (name for group in GROUPS for name in group):
        expected = first_said(name, own, profile, said)
        assert (getattr(found.limits, name) or None) == (expected or None)
        assert (name in found.sources) == (expected is not None)


@modestly
@given(values(), values(), values(), caps)
def test_each_number_is_what_its_source_says(
    own: Values, profile: Values, said: Values, warm_up: int | None
) -> None:
    found = effective(account=own, profile=profile, settings=said, warm_up_cap=warm_up)
    told = {Source.ACCOUNT: own, Source.PROFILE: profile, Source.SETTINGS: said}
    for name, source in found.sources.items():
        expected = warm_up if source is Source.WARM_UP else told[source][name]
        assert getattr(found.limits, name) == expected
    for group in GROUPS:
        assert len({found.sources.get(name) for name in group}) == 1


@modestly
@given(values(), values(), values(), st.integers(1, 100_000))
def test_a_warm_up_makes_the_day_stricter_and_changes_nothing_else(
    own: Values, profile: Values, said: Values, warm_up: int
) -> None:
    without = effective(account=own, profile=profile, settings=said)
    warming = effective(account=own, profile=profile, settings=said, warm_up_cap=warm_up)
    assert warming.limits.per_day == min(warm_up, without.limits.per_day or math.inf)
    assert {name: source for name, source in warming.sources.items() if name != "per_day"} == {
        name: source for name, source in without.sources.items() if name != "per_day"
    }


def merge(**said: Values | int | None) -> Effective:
    return effective(**{"account": {}, "profile": {}, "settings": {}, **said})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("own_cap", "expected", "source"),
    [
        (None, 20, Source.WARM_UP),
        (100, 20, Source.WARM_UP),
        (20, 20, Source.WARM_UP),  # both say it, and the warm-up is the one that will change
        (5, 5, Source.ACCOUNT),
    ],
)
def test_the_stricter_of_a_cap_and_the_warm_up_wins(
    own_cap: int | None, expected: int, source: Source
) -> None:
    found = merge(account={"per_day": own_cap}, warm_up_cap=20)
    assert (found.limits.per_day, found.sources["per_day"]) == (expected, source)


def test_half_a_pair_says_nothing() -> None:
    found = merge(account={"gap_min": 5}, profile={"gap_min": 1, "gap_max": 2})
    assert (found.limits.gap_min, found.limits.gap_max) == (1, 2)
    assert found.sources["gap_min"] is found.sources["gap_max"] is Source.PROFILE


def test_nothing_said_is_no_limit() -> None:
    assert not merge().sources
