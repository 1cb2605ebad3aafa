"""LinkedIn: the last part of a profile's address, or the id that the service gives to a profile."""

import re
from urllib.parse import unquote

from accounts.addresses.form import Address, BadAddressError, plain, shown

PROFILE = re.compile(r"^(?:https?://)?(?:[\w-]+\.)*linkedin\.com/(?:mwlite/)?in/([^/?#]+).*$", re.IGNORECASE)
SALES_LEAD = re.compile(
    r"^(?:https?://)?(?:[\w-]+\.)*linkedin\.com/sales/(?:lead|people)/([^,/?#]+).*$", re.IGNORECASE
)
URN = re.compile(r"^urn:li:\w+:(?:\()?([\w-]+).*$", re.IGNORECASE)
# Ids such as ACoAABcd... mean something else in another case; the names that people chose do not.
PROVIDER_ID = re.compile(r"^A[CDE][A-Za-z0-9][A-Za-z0-9_-]{17,}$")
NAME = re.compile(r"^[\w-]{3,100}$")

EXAMPLE = "Write it like linkedin.com/in/anna-lee."


def canonical(text: str) -> Address:
    found = text
    for form in (PROFILE, SALES_LEAD, URN):
        found = form.sub(r"\1", found)
    found = plain(unquote(found)).removeprefix("in/").removeprefix("@").strip("/")
    if PROVIDER_ID.match(found):
        return Address(kind="profile", text=found)
    if "linkedin.com/" in found.lower():
        raise BadAddressError(f"{shown(text)} is not a person's profile. {EXAMPLE}")
    name = plain(found.lower())
    if not NAME.match(name):
        raise BadAddressError(f"{shown(text)} is not the name of a LinkedIn profile. {EXAMPLE}")
    return Address(kind="profile", text=name)
