"""The benchmark of growth compares what can be compared."""

from django.utils import timezone

from benchmarks import growth, plans


def test_a_statement_is_compared_with_itself_and_noise_is_no_growth() -> None:
    assert growth._growth(2.0, 3.0) == 1.5
    assert growth._growth(0.01, 0.15) == 1.0, "both are too short to tell"


def test_only_a_days_count_may_grow_with_its_own_rows() -> None:
    names = {question.name for question in plans.engine(timezone.now())}
    assert names > growth.OWN_SIZE
