"""One form per address: whatever noise it is written with, and however often it goes through."""

import re

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from accounts.addresses import SHAPES, Address, BadAddressError, canonical

MODEST = settings(max_examples=80, deadline=None)

WRITTEN = {
    "whatsapp": r"(\+|00)?[1-9][0-9 ()-]{7,13}[0-9](@c\.us|@s\.whatsapp\.net|@g\.us)?",
    "email": r"[\w.+]{1,12}@[\w-]{1,12}\.[a-z]{2,5}",
    "linkedin": r"(https://www\.linkedin\.com/in/)?[\w%-]{3,20}/?",
    "matrix": r"[!#@][\w%]{1,12}:[A-Za-z0-9.]{1,12}(:[0-9]{2})?",
}
addresses = st.one_of(
    *(
        st.tuples(st.just(channel), st.one_of(st.from_regex(form, fullmatch=True), st.text(max_size=30)))
        for channel, form in WRITTEN.items()
    )
)
regions = st.sampled_from(["", "MY", "DE", "US", "MX", "BR", "AR", "RU"])


def address_or_refusal(channel: str, text: str, region: str) -> Address | BadAddressError:
    try:
        return canonical(channel, text, region=region)
    except BadAddressError as refusal:
        return refusal


@MODEST
@given(written=addresses, region=regions)
@example(written=("email", "İ@example.com"), region="")
@example(written=("whatsapp", "310000000"), region="")
@example(written=("matrix", "!a%21:example.org"), region="")
def test_a_canonical_address_stays_as_it_is_in_any_region(written: tuple[str, str], region: str) -> None:
    channel, text = written
    once = address_or_refusal(channel, text, region)
    if isinstance(once, Address):
        for elsewhere in ("", "MY", "DE", "US", "IT", "BR"):
            assert canonical(channel, once.text, region=elsewhere) == once


@MODEST
@given(written=addresses, region=regions)
def test_an_address_has_the_shape_that_the_database_asks_for_or_is_refused_in_a_sentence(
    written: tuple[str, str], region: str
) -> None:
    channel, text = written
    found = address_or_refusal(channel, text, region)
    if isinstance(found, Address):
        shapes = [shape for where, kind, shape in SHAPES if (where, kind) == (channel, found.kind)]
        assert any(re.search(shape, found.text) for shape in shapes)
        assert len(found.text) <= 255
    else:
        assert str(found).endswith((".", "?"))


UNSEEN = st.sampled_from(["", " ", "\u00a0", "\u200b", "\u202a", "\ufeff", "\t"])
BETWEEN = st.sampled_from(["", " ", "-", ".", "\u00a0", "\u2011", " - ", "\u200e"])


@MODEST
@given(data=st.data(), digits=st.integers(0, 9_999_999))
def test_formatting_never_changes_a_number(data: st.DataObject, digits: int) -> None:
    number = f"6012{digits:07}"
    prefix = data.draw(st.sampled_from(["+", "00", "tel:+", "whatsapp:+", "\uff0b"]))
    noisy = "".join(figure + data.draw(BETWEEN) for figure in number[:-1]) + number[-1]
    text = data.draw(UNSEEN) + prefix + noisy + data.draw(UNSEEN)
    assert canonical("whatsapp", text).text == f"+{number}"


@MODEST
@given(data=st.data(), name=st.from_regex(r"[a-z][a-z0-9.]{0,10}[a-z0-9]", fullmatch=True))
def test_case_and_unseen_marks_never_change_a_mailbox(data: st.DataObject, name: str) -> None:
    assume(".." not in name)
    written = "".join(
        data.draw(st.sampled_from([letter, letter.upper()])) for letter in f"{name}@example.com"
    )
    assert canonical("email", data.draw(UNSEEN) + written + data.draw(UNSEEN)).text == f"{name}@example.com"


@pytest.mark.parametrize("channel", list(WRITTEN))
@pytest.mark.parametrize("text", ["", "   ", "\u200b", "x" * 300])
def test_nothing_and_far_too_much_are_no_addresses(channel: str, text: str) -> None:
    with pytest.raises(BadAddressError):
        canonical(channel, text)
