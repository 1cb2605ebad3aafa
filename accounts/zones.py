"""Time zones by their IANA names."""

from functools import cache
from zoneinfo import available_timezones

from django.core.exceptions import ValidationError


@cache
def known_zones() -> frozenset[str]:
    return frozenset(available_timezones())


def validate_zone(name: str) -> None:
    if name not in known_zones():
        raise ValidationError(
            f"“{name}” is not a time zone. Write it like Asia/Kuala_Lumpur or Europe/Berlin."
        )


@cache
def common_zones() -> list[str]:
    """Return the zones that people look for: places, without historical names."""
    places = tuple(
        f"{region}/"
        for region in (
            "Africa",
            "America",
            "Antarctica",
            "Asia",
            "Atlantic",
            "Australia",
            "Europe",
            "Indian",
            "Pacific",
        )
    )
    return ["UTC", *sorted(zone for zone in known_zones() if zone.startswith(places))]
