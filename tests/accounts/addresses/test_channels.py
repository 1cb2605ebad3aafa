"""Tables of what people, spreadsheets and services write, and what it means."""

import pytest

from accounts.addresses import BadAddressError, canonical

NUMBERS = [
    ("+60 12-345 6789", ""),
    ("60123456789@s.whatsapp.net", ""),
    ("60123456789@c.us", ""),
    ("60123456789@C.US", ""),
    ("60123456789:12@s.whatsapp.net", ""),  # one of several devices
    ("0060123456789", ""),
    ("60123456789", ""),  # as WhatsApp writes it
    ("+60 (0)12-345 6789", ""),
    ("tel:+60-12-345-6789", ""),
    ("https://wa.me/60123456789?text=hi", ""),
    ("https://api.whatsapp.com/send?text=hi&phone=60123456789", ""),
    ("+\uff16\uff10 123456789", ""),  # full-width, as typed in East Asia
    ("\u202a+60 12\u2011345 6789\u202c", ""),  # as copied from a contact card
    ("012-345 6789", "MY"),
    ("12-345 6789", "MY"),  # a spreadsheet ate the zero
    ("60123456789", "MY"),
    ("60123456789", "DE"),  # no German number: the country code was meant
    ("011 60 12 345 6789", "US"),  # as dialled from there
    ("(+60) 12-345 6789", ""),
    ("(0060) 12-345 6789", ""),
    ("60123456789.0", ""),  # a spreadsheet took it for a measure
    ("60123456789.00", "MY"),
    ("0123456789.0", "MY"),
    ("12.345.6789", "MY"),  # dots that part digits stay dots
    ("+\u0666\u0660 \u0661\u0662 \u0663\u0664\u0665 \u0666\u0667\u0668\u0669", ""),  # Arabic digits
]


@pytest.mark.parametrize(("text", "region"), NUMBERS)
def test_one_number_is_one_recipient(text: str, region: str) -> None:
    found = canonical("whatsapp", text, region=region)
    assert (found.kind, found.text) == ("person", "+60123456789")


@pytest.mark.parametrize(
    ("text", "region", "number"),
    [
        ("4915112345678", "DE", "+4915112345678"),  # own country code, not an area code 04915
        ("(202) 555-0123", "US", "+12025550123"),
        ("5215512345678@c.us", "", "+525512345678"),  # WhatsApp's old Mexican mobiles
        ("+52 1 55 1234 5678", "", "+525512345678"),
        ("5491123456789@c.us", "", "+5491123456789"),  # Argentina keeps its 9
        ("06 1234 5678", "IT", "+390612345678"),  # Italy keeps its zero
        ("347 123 4567", "IT", "+393471234567"),
        ("07400 123456", "GB", "+447400123456"),
        ("+44 (0)20 7946 0018", "", "+442079460018"),
        ("06 12 34 56 78", "FR", "+33612345678"),
        ("8 (916) 123-45-67", "RU", "+79161234567"),  # their trunk prefix is an 8
        ("098765 43210", "IN", "+919876543210"),
        ("0412 345 678", "AU", "+61412345678"),
        ("090-1234-5678", "JP", "+819012345678"),
        ("139 1234 5678", "CN", "+8613912345678"),
        ("0812-3456-789", "ID", "+628123456789"),
        ("011 15 2345-6789", "AR", "+5491123456789"),
        ("(11) 91234-5678", "BR", "+5511912345678"),
        ("553191234567@c.us", "", "+5531991234567"),  # WhatsApp's old Brazilian mobiles
        ("31 9123-4567", "BR", "+5531991234567"),
        ("+55 31 99123-4567", "", "+5531991234567"),
        ("553133334444", "", "+553133334444"),  # a landline has no 9
    ],
)
def test_countries_have_their_ways(text: str, region: str, number: str) -> None:
    assert canonical("whatsapp", text, region=region).text == number


@pytest.mark.parametrize(
    ("text", "group"),
    [
        ("120363000000000001@g.us", "120363000000000001@g.us"),
        ("120363000000000001", "120363000000000001@g.us"),
        (" 120363000000000001@G.US ", "120363000000000001@g.us"),
        ("60123456789-1401234567@g.us", "60123456789-1401234567@g.us"),  # before 2021
        ("60123456789-1401234567", "60123456789-1401234567@g.us"),
        ("120363000000000001@newsletter", "120363000000000001@newsletter"),
    ],
)
def test_groups_keep_their_ending(text: str, group: str) -> None:
    found = canonical("whatsapp", text)
    assert (found.kind, found.text) == ("group", group)


def test_a_person_who_hides_the_number_has_an_id() -> None:
    found = canonical("whatsapp", "123456789012345:7@lid")
    assert (found.kind, found.text) == ("person", "123456789012345@lid")


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("Anna.Lee@Example.COM", "anna.lee@example.com"),
        ("Anna Lee <anna.lee@example.com>", "anna.lee@example.com"),
        ("mailto:anna.lee@example.com?subject=Hi", "anna.lee@example.com"),
        ("anna.lee@example.com.", "anna.lee@example.com"),
        ("anna+news@gmail.com", "anna+news@gmail.com"),  # another mailbox at most providers
        ("post@Müller.de", "post@xn--mller-kva.de"),
        ("post@xn--mller-kva.de", "post@xn--mller-kva.de"),
        ("post@faß.de", "post@xn--fa-hia.de"),  # not fass.de, which is another domain
        ("用户@例え.jp", "用户@xn--r8jz45g.jp"),
    ],
)
def test_a_mailbox_has_one_form(text: str, address: str) -> None:
    found = canonical("email", text)
    assert (found.kind, found.text) == ("mailbox", address)


@pytest.mark.parametrize(
    ("text", "kind", "address"),
    [
        ("!AbC:Example.org", "room", "!AbC:example.org"),
        ("#Team:EXAMPLE.org:8448", "room", "#Team:example.org:8448"),
        ("https://matrix.to/#/%23Team:example.org?via=example.org", "room", "#Team:example.org"),
        ("https://app.element.io/#/room/#Team:example.org", "room", "#Team:example.org"),
        ("https://app.element.io/#/user/@Anna:example.org", "person", "@anna:example.org"),
        ("!" + "aB3" * 14 + "_", "room", "!" + "aB3" * 14 + "_"),  # room version 12 names no server
        ("@Anna:Example.org", "person", "@anna:example.org"),
    ],
)
def test_rooms_and_people_on_matrix(text: str, kind: str, address: str) -> None:
    found = canonical("matrix", text)
    assert (found.kind, found.text) == (kind, address)


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("https://www.linkedin.com/in/Anna-Lee-123/", "anna-lee-123"),
        ("linkedin.com/in/anna-lee-123?trk=abc", "anna-lee-123"),
        ("https://my.linkedin.com/in/anna-lee-123/en", "anna-lee-123"),
        ("in/anna-lee-123", "anna-lee-123"),
        ("anna-lee-123", "anna-lee-123"),
        ("https://www.linkedin.com/in/jos%C3%A9-ruiz", "josé-ruiz"),
        ("ACoAABcdEFghIJklMNopQRst", "ACoAABcdEFghIJklMNopQRst"),  # an id has its case
        ("urn:li:fsd_profile:ACoAABcdEFghIJklMNopQRst", "ACoAABcdEFghIJklMNopQRst"),
        (
            "https://www.linkedin.com/sales/lead/ACwAABcdEFghIJklMNopQRst,NAME_SEARCH,a1",
            "ACwAABcdEFghIJklMNopQRst",
        ),
    ],
)
def test_a_profile_has_one_form(text: str, address: str) -> None:
    found = canonical("linkedin", text)
    assert (found.kind, found.text) == ("profile", address)


@pytest.mark.parametrize(
    ("channel", "text", "region", "why"),
    [
        ("whatsapp", "call me", "", "is not a phone number"),
        ("whatsapp", "1-800-FLOWERS", "US", "is not a phone number"),
        ("whatsapp", "012-345 6789", "", "no country is set"),
        ("whatsapp", "6.01235E+10", "", "lost digits in a spreadsheet"),
        ("whatsapp", "+60 12", "", "too few digits for a number of +60"),
        ("whatsapp", "+60 12 345 678 901 23", "", "too many digits for a number of +60"),
        ("whatsapp", "+999 123 456", "", "no country code that exists"),
        ("whatsapp", "+31 00 000 0000", "", "more zeros than a number has"),
        ("whatsapp", "12", "MY", "is not a number of MY"),
        ("whatsapp", "anna@example.com", "", "is not a phone number"),
        ("whatsapp", "6.01E+10", "MY", "lost digits in a spreadsheet"),
        ("whatsapp", "2026-11-20", "", "is a date"),
        ("whatsapp", "2026-11-20T09:30:00", "MY", "is a date"),
        ("whatsapp", "status@broadcast", "", "is a broadcast list"),
        ("whatsapp", "60123456789@broadcast", "", "is a broadcast list"),
        ("whatsapp", "https://chat.whatsapp.com/AbCdEfGh", "", "is an invitation to a group"),
        ("whatsapp", "+60 12-345 6789 ext. 5", "", "has an extension"),
        ("whatsapp", "+60123456789;ext=5", "", "has an extension"),
        ("whatsapp", "+60 12-345 6789 x12", "", "has an extension"),
        ("whatsapp", "012-345 6789 / 013-222 3333", "MY", "more than one number"),
        ("whatsapp", "+60 12-345 6789, +60 13-222 3333", "", "more than one number"),
        ("email", "anna", "", "has no @"),
        ("email", "anna@localhost", "", "has no domain"),
        ("email", "anna lee@example.com", "", "before the @"),
        ("email", "anna@exa_mple.com", "", "has no domain"),
        ("email", '"anna lee"@example.com', "", "before the @"),
        ("email", f"{'a' * 65}@example.com", "", "before the @"),
        ("email", f"{'a' * 60}@{'b' * 60}.{'c' * 60}.{'d' * 60}.{'e' * 60}.com", "", "longer"),
        ("matrix", f"#{'a' * 250}:example.org", "", "too long"),
        ("linkedin", "linkedin.com/in/anna?" + "a" * 2000, "", "too long"),
        ("matrix", "team:example.org", "", "is not a room or a person"),
        ("matrix", "#team", "", "on which server"),
        ("matrix", "#my team:example.org", "", "a space"),
        ("linkedin", "https://www.linkedin.com/company/acme", "", "not a person's profile"),
        ("linkedin", "Anna Lee", "", "not the name of a LinkedIn profile"),
    ],
)
def test_a_bad_address_is_refused_with_the_reason_and_what_to_do(
    channel: str, text: str, region: str, why: str
) -> None:
    with pytest.raises(BadAddressError, match=r"\b(Write|Use) ") as refused:
        canonical(channel, text, region=region)
    assert why in str(refused.value)
