"""Meta's messaging limit, in the forms that it has had."""

import pytest

from delivery.transports.cloud_api.limits import read


@pytest.mark.parametrize(
    ("value", "people"),
    [
        ("TIER_250", 250),
        ("TIER_2K", 2_000),
        ("tier_100k", 100_000),
        (1000, 1_000),
        ("2000", 2_000),
        ({"current_limit": "TIER_10K"}, 10_000),
        ("TIER_UNLIMITED", None),
        ("TIER_NOT_SET", None),
        (-1, None),
        (True, None),
        (None, None),
        (0, None),
    ],
)
def test_a_limit_is_a_number_or_a_tier(value: object, people: int | None) -> None:
    told = {"whatsapp_business_manager_messaging_limit": value}
    assert read(told).people_per_24_hours == people
    assert read(told).said == told


def test_the_older_name_counts_where_the_new_one_is_missing() -> None:
    assert read({"messaging_limit_tier": "TIER_1K"}).people_per_24_hours == 1_000
    assert read({}).people_per_24_hours is None
