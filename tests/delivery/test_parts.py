from io import BytesIO

import pytest

from delivery.parts import FrozenPart, MessageBuilder, MissingVariableError, all_wordings, thaw

TEXT = FrozenPart(kind="text", text="Hello {{ name }}")
MEDIA = FrozenPart(
    kind="media",
    text="For {{ name }}",
    sha256="a" * 64,
    file="aa/aaa",
    filename="fair.png",
    content_type="image/png",
)
BUILDER = MessageBuilder(
    action="message",
    subject="To {{ name }}",
    open_file=lambda name: BytesIO(name.encode()),
    handles={"a" * 64: "handle-1"},
)


@pytest.mark.parametrize("part", [TEXT, MEDIA])
def test_a_frozen_part_survives_the_database(part: FrozenPart) -> None:
    assert thaw([part.as_json()]) == (part,)


def test_a_frozen_part_keeps_only_what_it_has() -> None:
    assert TEXT.as_json() == {"kind": "text", "text": "Hello {{ name }}"}


def test_a_text_is_written_for_its_recipient() -> None:
    message = BUILDER.message(TEXT, address="+6012", values={"name": "Ada"})
    assert (message.address, message.text, message.subject) == ("+6012", "Hello Ada", "To Ada")
    assert (message.kind, message.media, message.action) == ("text", None, "message")


def test_a_media_part_has_its_caption_its_handle_and_its_file() -> None:
    message = BUILDER.message(MEDIA, address="+6012", values={"name": "Ada"})
    assert message.text == "For Ada"
    assert message.media is not None
    assert (message.media.handle, message.media.filename) == ("handle-1", "fair.png")
    assert message.media.open().read() == b"aa/aaa"


def test_a_variable_without_a_value_is_no_message() -> None:
    with pytest.raises(MissingVariableError):
        BUILDER.message(TEXT, address="+6012", values={})


def test_wordings_survive_the_database_and_are_drawn_by_the_key() -> None:
    part = FrozenPart(kind="text", text="A {{ name }}", wordings=("A {{ name }}", "B {x|y}"))
    assert thaw([part.as_json()]) == (part,)
    texts = {
        BUILDER.message(part, address="+6012", values={"name": "Ada"}, key=f"k-{n}").text for n in range(40)
    }
    assert texts == {"A Ada", "B x", "B y"}


@pytest.mark.parametrize(
    ("text", "others", "wordings"),
    [
        ("Hello", [], ()),
        ("{a|b}", None, ()),  # from before there were choices
        ("{a|b}", [], ("{a|b}",)),
        ("\\{a|b}", [], ("\\{a|b}",)),
        ("Hello", ["Hi"], ("Hello", "Hi")),
    ],
)
def test_a_text_has_wordings_where_something_is_drawn(
    text: str, others: list[str] | None, wordings: tuple[str, ...]
) -> None:
    assert all_wordings(text, others) == wordings
