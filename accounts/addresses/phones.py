"""WhatsApp: phone numbers in E.164, and the ids that WhatsApp gives to groups.

A number is accepted when its length is right for its country. Only WhatsApp knows whether the number is in use: the
published lists of ranges in use lag behind the operators.
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
# A linked device writes as 60123456789:12@s.whatsapp.net.
PERSON_ID = re.compile(r"^\+?(\d+)(?:[._]\d+)?(?::\d+)?@(?:c\.us|s\.whatsapp\.net)$", re.IGNORECASE)
HIDDEN_ID = re.compile(r"^(\d{1,20})(?::\d+)?@lid$", re.IGNORECASE)
GROUP_ID = re.compile(r"^(\d{1,20}(?:-\d{1,20})?)@(g\.us|newsletter)$", re.IGNORECASE)
# No phone number has more than 15 digits: longer ones are ids of groups that lost their ending.
BARE_GROUP_ID = re.compile(r"^(\d{16,20}|\d{7,15}-\d{10})$")
DASH = re.compile("[\u2010-\u2015\u2212]")
NUMBER = re.compile(r"^\(?\+?[\d\s().\-/]+$")
# A spreadsheet that stores a number as a measurement writes 60123456789.0
DECIMALS = re.compile(r"^(\+?\d{6,})\.0+$")
# WhatsApp's ids keep what numbering plans gave up: the 1 before Mexican mobiles, until 2019, and Brazilian mobiles
# without the 9 that all of them got until 2016. Who gave the number writes the new one, who replies has the old one.
RENUMBERED = (
    (re.compile(r"^\+521(\d{10})$"), r"+52\1"),
    (re.compile(r"^\+55([1-9]{2})([6-9]\d{7})$"), r"+55\g<1>9\2"),
)

EXAMPLE = "Write the number with its country code, like +60 12-345 6789."
# Texts that look like an address and are not one, each with what to do about it.
LOOKALIKES = (
    (
        re.compile(r"^\d[.,]\d+e\+?\d+$", re.IGNORECASE),
        f"lost digits in a spreadsheet. Format the column as text. {EXAMPLE}",
    ),
    (
        re.compile(r"^\d{4}-(0[1-9]|1[0-2])-([0-2]\d|3[01])(T.*)?$"),
        f"is a date. Choose the column of the numbers. {EXAMPLE}",
    ),
    (
        re.compile(r"@broadcast$", re.IGNORECASE),
        "is a broadcast list, which only its own phone can write to. Write to its members instead.",
    ),
    (
        re.compile(r"chat\.whatsapp\.com/", re.IGNORECASE),
        "is an invitation to a group. Use an account that is a member of it: its groups are read automatically.",
    ),
    (
        re.compile(r"\d\s*[;,]*\s*(ext\.?|extension|x|#)[\s=:.]*\d{1,6}$", re.IGNORECASE),
        f"has an extension, which WhatsApp cannot reach. {EXAMPLE}",
    ),
    (
        re.compile(r"\d{3}\s*([,;&]|\s/\s|\bor\b)\s*[+(]*\d", re.IGNORECASE),
        "has more than one number. Write each in a row of its own.",
    ),
)


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
    for form, why in LOOKALIKES:
        if form.search(text):
            raise BadAddressError(f"{shown(text)} {why}")
    if not NUMBER.match(text):
        raise BadAddressError(f"{shown(text)} is not a phone number or a WhatsApp group. {EXAMPLE}")
    digits = re.sub(r"\D", "", DECIMALS.sub(r"\1", text))
    if "+" in text or digits.startswith("00"):
        return _international(digits.removeprefix("00"), text)
    if region:
        return _local(digits, text, region)
    if digits.startswith("0"):
        raise BadAddressError(
            f"{shown(text)} has no country code, and no country is set for your numbers. {EXAMPLE}"
        )
    return _international(digits, text)


def _local(digits: str, text: str, region: str) -> str:
    """Return the number for digits without a plus, where local numbers belong to `region`.

    People write their own country's code without its plus, and WhatsApp writes every number so. The reading that
    makes a valid number decides; a local number comes before a foreign one.
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
    number = _parsed(f"+{digits}", None)
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
        number = phonenumbers.parse(text, region)
    except NumberParseException:
        return None
    for old, new in RENUMBERED:
        if old.match(_e164(number)):
            return phonenumbers.parse(old.sub(new, _e164(number)))
    return number


def _e164(number: phonenumbers.PhoneNumber) -> str:
    return phonenumbers.format_number(number, PhoneNumberFormat.E164)
