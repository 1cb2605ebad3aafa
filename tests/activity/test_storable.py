import pytest

from activity.storable import storable


@pytest.mark.parametrize(
    ("told", "kept"),
    [
        ("Grüße 👋🏽", "Grüße 👋🏽"),
        ("half \ud83d", "half ?"),
        ("no\x00thing", "nothing"),
        ("long" * 99, "longlonglo"),
    ],
)
def test_what_others_wrote_fits_the_database(told: str, kept: str) -> None:
    assert storable(told, 10) == kept
