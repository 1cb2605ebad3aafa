"""WhatsApp: phone numbers in E.164, and the ids that WhatsApp gives to groups.

A number is taken when its length is right for its country. Whether it is in use only WhatsApp knows, and the
lists of ranges in use lag behind the operators.
"""

import re

import phonenumbers
from phonenumbers import NumberParseException, PhoneNumberFormat, ValidationResult

from accounts.addresses.form import Address, BadAddressError, shown

LINK = re.compile(
    r"^(?:https?://)?(?:wa\.me/|(?:api|web)\.whatsapp\.com/send/?\?(?:[^#]*&)?phone=)\+?(\d+).*$",
    re.IGNORECASE,
)
SCHEME = re.compile(r"^(?:tel|whatsapp|phone):", re.IGNORECASE)
# One device of several writes as 60123456789:12@s.whatsapp.net.
PERSON_ID = re.compile(r"^\+?(\d+)(?:[._]\d+)?(?::\d+)?@(?:c\.us|s\.whatsapp\.net)$", re.IGNORECASE)
HIDDEN_ID = re.compile(r"^(\d{1,20})(?::\d+)?@lid$", re.IGNORECASE)
GROUP_ID = re.compile(r"^(\d{1,20}(?:-\d{1,20})?)@(g\.us|newsletter)$", re.IGNORECASE)
# No phone number has more than 15 digits: these are ids of groups that lost their ending.
BARE_GROUP_ID = re.compile(r"^(\d{16,20}|\d{7,15}-\d{10})$")
DASH = re.compile("[\u2010-\u2015\u2212]")
SHORTENED = re.compile(r"^\d[.,]\d+e\+\d+$", re.IGNORECASE)
NUMBER = re.compile(r"^\+?[\d\s().\-/]+$")
# WhatsApp still puts a 1 before Mexican mobiles, as dialling did until 2019.
MEXICAN_MOBILE = re.compile(r"^521(\d{10})$")

EXAMPLE = "Write the number with its country code, like +60 12-345 6789."


def canonical(text: str, region: str) -> Address:
    text = DASH.sub("-", SCHEME.sub("", LINK.sub(r"+\1", text)).strip())
    if match := GROUP_ID.match(text):
        return Address(kind="group", text=f"{match[1]}@{match[2].lower()}")
    if match := BARE_GROUP_ID.match(text):
        return Address(kind="group", text=f"{match[1]}@g.us")
    if match := HIDDEN_ID.match(text):
        return Address(kind="person", text=f"{match[1]}@lid")
    if match := PERSON_ID.match(text):
        return Address(kind="person", text=_international(match[1], text))
    return Address(kind="person", text=_number(text, region))


def _number(text: str, region: str) -> str:
    if SHORTENED.match(text):
        raise BadAddressError(
            f"{shown(text)} lost digits in a spreadsheet. Format the column as text. {EXAMPLE}"
        )
    if not NUMBER.match(text):
        raise BadAddressError(f"{shown(text)} is not a phone number or a WhatsApp group. {EXAMPLE}")
    digits = re.sub(r"\D", "", text)
    if text.startswith("+") or digits.startswith("00"):
        return _international(digits.removeprefix("00"), text)
    if region:
        return _local(digits, text, region)
    if digits.startswith("0"):
        raise BadAddressError(
            f"{shown(text)} has no country code, and no country is set for your numbers. {EXAMPLE}"
        )
    return _international(digits, text)


def _local(digits: str, text: str, region: str) -> str:
    """A number without a plus, where local numbers are of `region`.

    People write their own country's code without its plus, and WhatsApp writes every number so: what makes a
    valid number decides. Local comes before foreign.
    """
    code = str(phonenumbers.country_code_for_region(region))
    readings = [f"+{digits}"] if digits.startswith(code) else []
    for reading in (*readings, digits, f"+{digits}"):
        number = _parsed(reading, region)
        if number is not None and phonenumbers.is_valid_number(number):
            return _e164(number)
    raise BadAddressError(
        f"{shown(text)} is not a number of {region}, nor one with a country code. {EXAMPLE}"
    )


def _international(digits: str, text: str) -> str:
    number = _parsed("+" + MEXICAN_MOBILE.sub(r"52\1", digits), None)
    if number is None:
        raise BadAddressError(f"{shown(text)} begins with no country code that exists. {EXAMPLE}")
    match phonenumbers.is_possible_number_with_reason(number):
        case ValidationResult.IS_POSSIBLE if _parsed(_e164(number), None) == number:
            return _e164(number)
        case ValidationResult.IS_POSSIBLE:
            why = "begins with more zeros than a number has"
        case ValidationResult.TOO_LONG:
            why = f"has too many digits for a number of +{number.country_code}"
        case ValidationResult.INVALID_COUNTRY_CODE:
            why = "begins with no country code that exists"
        case _:
            why = f"has too few digits for a number of +{number.country_code}"
    raise BadAddressError(f"{shown(text)} {why}. {EXAMPLE}")


def _parsed(text: str, region: str | None) -> phonenumbers.PhoneNumber | None:
    try:
        return phonenumbers.parse(text, region)
    except NumberParseException:
        return None


def _e164(number: phonenumbers.PhoneNumber) -> str:
    return phonenumbers.format_number(number, PhoneNumberFormat.E164)
