from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accounts import warm_up_plan
from accounts.profiles import PROFILES, WarmUp

plans = st.builds(
    lambda start, step, more: WarmUp(start=start, step=step, ceiling=start + more),
    st.integers(1, 500),
    st.integers(1, 500),
    st.integers(0, 5000),
)


def test_an_account_with_a_plan_of_its_own_has_that_one() -> None:
    own = warm_up_plan.plan(profile="whatsapp_careful", start=1, step=2, ceiling=3)
    assert own == WarmUp(start=1, step=2, ceiling=3)


def test_an_account_that_picked_the_careful_profile_has_its_plan() -> None:
    picked = warm_up_plan.plan(profile="whatsapp_careful", start=None, step=None, ceiling=None)
    assert picked == PROFILES["whatsapp_careful"].warm_up
    assert picked is not None


def test_an_established_account_is_warm() -> None:
    assert warm_up_plan.plan(profile="whatsapp_established", start=None, step=None, ceiling=None) is None


@given(plans, st.integers(0, 1000))
def test_the_curve_grows_by_its_step_to_its_ceiling_and_ends_there(plan: WarmUp, clean_days: int) -> None:
    caps = warm_up_plan.curve(plan, clean_days, most=6000)
    assert caps[0] == warm_up_plan.cap(plan, clean_days)
    assert caps[-1] == plan.ceiling
    assert all(0 < after - before <= plan.step for before, after in pairwise(caps))


def test_a_curve_has_no_more_days_than_a_page_wants() -> None:
    assert warm_up_plan.curve(WarmUp(start=10, step=10, ceiling=1000), 0, most=3) == (10, 20, 30)


@pytest.mark.parametrize(
    ("sent", "failed", "warned", "clean"),
    [
        (1, 0, 0, True),
        (95, 5, 0, True),  # a twentieth failed: addresses that are gone
        (94, 6, 0, False),
        (1000, 0, 1, False),  # one complaint of the service is enough
        (0, 0, 0, False),  # a day without messages proves nothing
        (0, 3, 0, False),
    ],
)
def test_which_days_count(sent: int, failed: int, warned: int, clean: bool) -> None:
    assert warm_up_plan.is_clean(sent=sent, failed=failed, warned=warned) is clean


OLD = WarmUp(start=20, step=10, ceiling=100)


@pytest.mark.parametrize(
    ("before", "after", "again"),
    [
        (OLD, OLD, False),
        (OLD, WarmUp(start=20, step=10, ceiling=900), False),  # on the same way, only further
        (OLD, WarmUp(start=30, step=10, ceiling=100), True),
        (OLD, WarmUp(start=20, step=50, ceiling=100), True),  # else the cap would leap
        (None, OLD, True),
        (OLD, None, False),  # there is nothing to begin
    ],
)
def test_when_a_changed_plan_begins_again(before: WarmUp | None, after: WarmUp | None, again: bool) -> None:
    assert warm_up_plan.begins_again(before, after) is again


@pytest.mark.parametrize(
    ("clean_days", "rests", "left"),
    [
        (4, 0, 4),
        (4, 1, 2),
        (4, 2, 1),
        (4, 3, 0),
        (1_000, 1, 4),  # the ceiling is reached after 8 days: more do not count
        (3, 10_000, 0),
    ],
)
def test_rests_halve_the_days_that_count(clean_days: int, rests: int, left: int) -> None:
    plan = WarmUp(start=20, step=10, ceiling=100)
    assert warm_up_plan.after_rests(plan, clean_days, rests) == left


def test_an_account_without_a_plan_keeps_its_days() -> None:
    assert warm_up_plan.after_rests(None, 4, 2) == 4
