"""E-mails as a mail program reads them."""

import email
import email.policy
import io
from dataclasses import replace
from email.message import EmailMessage

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from delivery.outcomes import Rejected
from delivery.transports.base import CredentialsError, MediaRef, Message
from delivery.transports.mail.composing import SENDER_FIELDS, AddressError, Sender, mailbox, written_out
from delivery.transports.mail.html import html_of

LINK = "https://paceline.example/unsubscribe/" + "x" * 300


def sender(**credentials: str) -> Sender:
    filled = {field.name: field.default for field in SENDER_FIELDS} | {"from_address": "news@school.example"}
    return Sender(filled | credentials)


def message(text: str = "Hello", **more: str) -> Message:
    return Message(address="reader@example.com", kind="text", text=text, **more)  # type: ignore[arg-type]


def read(sent: Message, key: str = "run-1", content: bytes = b"", **credentials: str) -> EmailMessage:
    mail = sender(**credentials).compose(sent, key, content)
    assert not isinstance(mail, Rejected)
    parsed = email.message_from_bytes(written_out(mail), policy=email.policy.default)
    assert isinstance(parsed, EmailMessage)
    return parsed


def body(mail: EmailMessage, kind: str) -> str:
    part = mail.get_body((kind,))
    assert part is not None
    return str(part.get_content()).replace("\r\n", "\n")


def file(content_type: str, filename: str = "Fête été.pdf") -> Message:
    media = MediaRef(sha256="ab" * 32, filename=filename, content_type=content_type, open=io.BytesIO)
    return Message(address="reader@example.com", kind="media", text="Look", media=media)


class TestHeaders:
    def test_names_and_subjects_may_have_any_letters(self) -> None:
        subject = "Grüße 👋🏽 مرحبا 你好 " * 6
        mail = read(message(subject=subject), from_name='Zoë "Müller", GmbH')
        assert mail["Subject"] == subject.strip()
        assert mail["From"].addresses[0].display_name == 'Zoë "Müller", GmbH'
        assert mail["From"].addresses[0].addr_spec == "news@school.example"

    def test_the_message_id_is_the_key_and_never_changes(self) -> None:
        first, second = (read(message(), "run-1:target/2ü")["Message-ID"] for _ in range(2))
        assert first == second == "<run-1%3Atarget%2F2%C3%BC@school.example>"

    def test_an_email_continues_the_conversation_of_earlier_ones(self) -> None:
        mail = read(replace(message(subject="News"), thread=("<a.1@school.example>", "<a.2@school.example>")))
        assert mail["In-Reply-To"] == "<a.2@school.example>"
        assert mail["References"] == "<a.1@school.example> <a.2@school.example>"
        assert mail["Subject"] == "Re: News"
        assert read(replace(message(subject="RE: x"), thread=("<a@b.c>",)))["Subject"] == "RE: x"

    @pytest.mark.parametrize(
        "known", ["0f9c-provider-id", "", "<>", "a b@c.d", "a@b\r\nBcc: x@y.z", "<a@b><c@d>", "ü@b.c"]
    )
    def test_an_id_that_is_no_message_id_continues_nothing(self, known: str) -> None:
        mail = read(replace(message(subject="News"), thread=(known,)))
        assert (mail["In-Reply-To"], mail["References"], mail["Bcc"]) == (None, None, None)
        assert mail["Subject"] == "News"

    def test_it_has_the_date_in_a_zone(self) -> None:
        assert read(message())["Date"].datetime.utcoffset() is not None

    def test_a_subject_cannot_bring_headers_of_its_own(self) -> None:
        mail = read(message(subject="Hello\r\nBcc: \x00everybody@example.com"))
        assert mail["Bcc"] is None
        assert mail["Subject"] == "Hello Bcc: everybody@example.com"

    def test_an_unsubscribe_link_of_any_length_stays_whole_on_its_line(self) -> None:
        mail = sender().compose(message(unsubscribe_url=LINK), "k")
        assert not isinstance(mail, Rejected)
        raw = written_out(mail)
        assert f"\r\nList-Unsubscribe: <{LINK}>\r\n".encode() in raw
        assert b"\r\nList-Unsubscribe-Post: List-Unsubscribe=One-Click\r\n" in raw

    def test_answers_and_copies_go_where_the_account_says(self) -> None:
        mail = sender(reply_to="office@school.example", copy_to="archive@school.example").compose(
            message(), "k"
        )
        assert not isinstance(mail, Rejected)
        assert mail.recipients() == ["reader@example.com", "archive@school.example"]
        assert b"archive@" not in written_out(mail)
        assert mail.reply_to == ["office@school.example"]

    @pytest.mark.parametrize("field", ["from_address", "reply_to", "copy_to"])
    def test_an_account_whose_address_is_none_is_refused(self, field: str) -> None:
        with pytest.raises(CredentialsError, match="is not an e-mail address"):
            sender(**{field: "nonsense"})


class TestBody:
    def test_the_text_is_there_twice_as_text_and_as_html(self) -> None:
        mail = read(message("Dear Zoë,\nsee <b>https://a.example/?x=1&y=2</b>.\n\n--\nBye"))
        assert body(mail, "plain") == "Dear Zoë,\nsee <b>https://a.example/?x=1&y=2</b>.\n\n--\nBye"
        html = body(mail, "html")
        assert "&lt;b&gt;" in html
        assert '<a href="https://a.example/?x=1&amp;y=2">' in html

    def test_the_unsubscribe_link_is_at_the_end_where_the_account_wants_it(self) -> None:
        shown = read(message(unsubscribe_url=LINK))
        assert body(shown, "plain").rstrip().endswith(f"Unsubscribe: {LINK}")
        assert f'<a href="{LINK}">Unsubscribe</a>' in body(shown, "html")

        hidden = read(message(unsubscribe_url=LINK), unsubscribe="button")
        assert LINK not in body(hidden, "plain") + body(hidden, "html")
        assert hidden["List-Unsubscribe"]

    @settings(max_examples=60, deadline=None)
    @given(
        st.text(
            alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="\r"),
            min_size=1,
            max_size=300,
        )
    )
    def test_any_text_arrives_and_nothing_in_it_becomes_markup(self, text: str) -> None:
        mail = read(message(text))
        assert body(mail, "plain") == text
        html = html_of(text)
        inside = html.partition("<body>")[2].partition("</body>")[0]
        for mark in ('<p dir="auto">', "</p>", "<br>", "</a>"):
            inside = inside.replace(mark, "")
        assert "<" not in inside.replace('<a href="http', "")

    def test_half_a_character_is_replaced(self) -> None:
        assert body(read(message("\ud83d cut", subject="\ud83d")), "plain") == "? cut"


class TestFiles:
    def test_a_picture_is_shown_in_the_message(self) -> None:
        mail = read(file("image/png", "Fête été.png"), content=b"\x89PNG")
        [part] = [part for part in mail.walk() if part.get_content_maintype() == "image"]
        assert part.get_content_disposition() == "inline"
        assert part.get_filename() == "Fête été.png"
        assert f'src="cid:{part["Content-ID"].strip("<>")}"' in body(mail, "html")

    @pytest.mark.parametrize(
        ("content_type", "sent_as"),
        [
            ("application/pdf", "application/pdf"),
            ("text/csv", "text/csv"),
            ("image/tiff", "image/tiff"),
            ("message/rfc822", "application/octet-stream"),
            ("multipart/mixed", "application/octet-stream"),
            ("nonsense", "application/octet-stream"),
        ],
    )
    def test_any_other_file_is_attached_as_it_is(self, content_type: str, sent_as: str) -> None:
        mail = read(file(content_type), content=b"a\nb\r\n\x00\xff")
        [part] = [part for part in mail.walk() if part.get_content_disposition() == "attachment"]
        assert part.get_content_type() == sent_as
        assert part.get_payload(decode=True) == b"a\nb\r\n\x00\xff"
        assert part.get_filename() == "Fête été.pdf"


class TestMailbox:
    @pytest.mark.parametrize(
        ("written", "sent"),
        [
            ("Anna.O'Neil+x@Example.COM", "Anna.O'Neil+x@example.com"),
            ("info@bücher.example", "info@xn--bcher-kva.example"),
            ("info@straße.example", "info@xn--strae-oqa.example"),
            (" a@b ", "a@b"),
        ],
    )
    def test_a_domain_is_written_as_the_dns_has_it(self, written: str, sent: str) -> None:
        assert mailbox(written) == sent

    @pytest.mark.parametrize(
        "address",
        ["", "a", "@b", "a@", "a b@c", "a@b c", "zoë@example.com", "a>@b", "a@b>", "a\n@b", ".a@b", "a@b..c"],
    )
    def test_what_is_no_address_is_refused_before_anything_is_sent(self, address: str) -> None:
        with pytest.raises(AddressError):
            mailbox(address)
        refused = sender().compose(Message(address=address, kind="text", text="x"), "k")
        assert isinstance(refused, Rejected)
        assert refused.code == "bad_address"
