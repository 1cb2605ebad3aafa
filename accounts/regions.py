"""The country of phone numbers that are written without one."""

from typing import TYPE_CHECKING

import phonenumbers
from django.conf import settings
from django.core.exceptions import ValidationError

if TYPE_CHECKING:
    from accounts.models import User


def validate_region(code: str) -> None:
    if code not in phonenumbers.SUPPORTED_REGIONS:
        raise ValidationError(f"“{code}” is not a country. Write its two letters, like MY or DE.")


def region_of(owner: "User") -> str:
    """Return the country of the owner's local numbers: their own setting, else the installation's. It may be empty."""
    return owner.region or str(settings.PHONE_REGION)
