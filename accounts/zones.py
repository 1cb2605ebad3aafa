"""Time zones by their IANA names."""

from functools import cache
from typing import Any
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


class ChecksZone:
    """Adds to a form with a field `zone`: an unknown zone is rejected before the row shows its times in it."""

    cleaned_data: dict[str, Any]

    def clean_zone(self) -> str:
        zone: str = self.cleaned_data["zone"]
        validate_zone(zone)
        return zone


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
