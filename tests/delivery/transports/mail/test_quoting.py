"""An e-mail's own words, as mail programs send them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from delivery.transports.mail.quoting import own_words


@pytest.mark.parametrize(
    "below",
    [
        "",
        "\n\nOn Mon, 16 Nov 2026 at 09:00, School <school@example.com> wrote:\n> Hello\n> Anna",
        "\n\nAm Mo., 16. Nov. 2026 um 09:00 Uhr schrieb School:\n> Hello",
        "\n\nLe lun. 16 nov. 2026 à 09:00, School a écrit :\n> Hello",
        "\n\n-----Original Message-----\nFrom: School <school@example.com>",
        "\n\n________________________________\nFrom: School <school@example.com>\nSubject: Hello",
        "\r\n\r\nVon: School\r\nGesendet: Montag",
        "\n\n-- \nAnna Lee\nTeacher",
        "\n\nSent from my iPhone",
    ],
)
def test_what_a_mail_program_puts_below_is_not_theirs(below: str) -> None:
    assert own_words("STOP" + below) == "STOP"


@pytest.mark.parametrize(
    "text",
    [
        "Please do not stop.\nI like this: it is good",
        "On time: yes",
        "",
        "two\n\nlines",
    ],
)
def test_what_they_wrote_themselves_stays(text: str) -> None:
    assert own_words(text) == text


@pytest.mark.parametrize(
    "above",
    [
        "> quoted\n",
        "> quoted\n>\n> more\n\n",
        "On Mon, 16 Nov 2026 at 09:00, School <school@example.com> wrote:\n> Hello\n\n",
        "Am 16.11.2026 um 09:00 schrieb School\n<school@example.com>:\n> Hallo\n",
    ],
)
def test_who_writes_below_a_quotation_is_read_too(above: str) -> None:
    assert own_words(above + "My answer is below") == "My answer is below"
    assert own_words(above + "My answer is below\n\n-- \nAnna") == "My answer is below"


@pytest.mark.parametrize(
    "text",
    [
        "On Mon, 16 Nov 2026 at 09:00, School <school@example.com> wrote:\nReply STOP to leave",
        "> Reply STOP to leave",
        "-----Original Message-----\nPlease remove me from your list.",
        "From: School\nSubject: STOP",
        "Sent from my iPhone",
    ],
)
def test_who_wrote_nothing_said_nothing(text: str) -> None:
    assert own_words(text) == ""


@given(st.text(max_size=200))
def test_nothing_is_made_up(text: str) -> None:
    assert own_words(text) in "\n".join(text.splitlines())
