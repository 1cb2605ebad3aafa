"""Turns a message into an e-mail: Django's own class, which is written out for SMTP and taken by every provider.

The identity of an e-mail is its Message-ID, made from the key: the same in every attempt, so that doubles can be found.
It does not prevent doubles, so e-mail does not count as idempotent.

A Message-ID is sealed: it ends in letters that only its recipient gets to see, made from the key, the password and the
recipient's own unsubscribe link. A person who answers it has received it; others of the same run cannot guess it.
"""

import hmac
import io
import re
from datetime import UTC, datetime
from email.charset import QP, Charset
from email.encoders import encode_base64
from email.generator import BytesGenerator
from email.header import Header
from email.mime.base import MIMEBase
from email.policy import compat32
from email.utils import format_datetime, formataddr
from urllib.parse import quote

from django.core.mail import EmailMultiAlternatives
from yarl import URL

from delivery.outcomes import Rejected
from delivery.transports.base import (
    CredentialField,
    Credentials,
    CredentialsError,
    MediaRef,
    Message,
    sendable,
)
from delivery.transports.mail.html import html_of

Mail = EmailMultiAlternatives
# Types that mail programs show inside a message; others are attached.
SHOWN_INLINE = frozenset({"image/png", "image/jpeg", "image/gif"})
# Other main types are made of parts, and would be read as such.
FILES = frozenset({"application", "audio", "font", "image", "model", "text", "video"})
LONGEST_SUBJECT = 900  # a line has at most 998 bytes (RFC 5322), and a word is never broken
SEAL_LENGTH = 24
MOST_REFERENCES = 6
_MESSAGE_ID = re.compile(
    r"<[!-;=?-~]{1,200}@[!-;=?-~]{1,200}>"
)  # no space, no bracket, no letter beyond ASCII
_SEALED = re.compile(rf"\.[0-9a-f]{{{SEAL_LENGTH}}}\Z")
_MAILBOX = re.compile(r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}")
# Lines of any length and any character get through: not every server takes 8-bit text.
_QUOTED = Charset("utf-8")
_QUOTED.body_encoding = QP
# A link longer than a line would otherwise be put on a line of its own, which some programs do not read.
_LONG_LINES = compat32.clone(max_line_length=998)

SENDER_FIELDS = (
    CredentialField(name="from_address", label="Sender's address", help="For example news@school.example."),
    CredentialField(name="from_name", label="Sender's name", required=False),
    CredentialField(
        name="reply_to",
        label="Answers go to",
        required=False,
        help="If replies should not go to the sender's address.",
    ),
    CredentialField(
        name="copy_to", label="Copies go to", required=False, help="Each e-mail is also sent there (Bcc)."
    ),
    CredentialField(
        name="dkim_selector",
        label="Name of the DKIM key",
        required=False,
        help="Its selector, as “google” in google._domainkey. Used to check your domain; without it the usual ones are "
        "tried.",
    ),
    CredentialField(
        name="unsubscribe",
        label="Unsubscribe link",
        default="link",
        choices=(
            ("link", "At the end of each e-mail, and as a button in mail programs"),
            ("button", "Only as a button in mail programs"),
        ),
    ),
)


class AddressError(ValueError):
    """Raised for an address that e-mail cannot be sent to."""


class Sender:
    """The sender of the e-mails, from the credentials; raises CredentialsError."""

    def __init__(self, credentials: Credentials, *, shows_pictures: bool = True, seals: bool = False) -> None:
        self._inline = SHOWN_INLINE if shows_pictures else frozenset()
        self.address = _checked(credentials, "from_address", "Sender's address")
        self.domain = self.address.rpartition("@")[2]
        self.reply_to = _checked(credentials, "reply_to", "Answers go to")
        self.copy_to = _checked(credentials, "copy_to", "Copies go to")
        name = credentials["from_name"]
        self.mailbox = formataddr((str(Header(name, "utf-8")) if not name.isascii() else name, self.address))
        self._link_shown = credentials["unsubscribe"] == "link"
        self._seals = seals  # where answers are read
        self._secret = credentials.get("password", "")

    def compose(self, message: Message, key: str, content: bytes = b"") -> Mail | Rejected:
        """Return the e-mail; `content` is that of the message's file."""
        try:
            to = mailbox(message.address)
        except AddressError as error:
            return Rejected(reason=str(error), code="bad_address")
        link = message.unsubscribe_url if self._link_shown else ""
        text = sendable(message.text)
        mail = Mail(
            subject=_header(_subject(message)),
            body=f"{text}\n\n-- \nUnsubscribe: {link}\n" if link else text,
            from_email=self.mailbox,
            to=[to],
            bcc=[self.copy_to] if self.copy_to else None,
            reply_to=[self.reply_to] if self.reply_to else None,
            headers=self._headers(message, key),
        )
        image = ""
        if message.media is not None:
            inline = message.media.content_type in self._inline
            image = f"{message.media.sha256[:32]}@{self.domain}" if inline else ""
            mail.attach(_attachment(message.media, content, image))
        mail.attach_alternative(html_of(text, image=image, unsubscribe_url=link), "text/html")
        return mail

    def message_id(self, message: Message, key: str) -> str:
        return f"<{quote(key, safe='')}{self._seal(message, key)}@{self.domain}>"

    def _seal(self, message: Message, key: str) -> str:
        """Return the seal; empty where answers are not read, or where there is no secret to make it from."""
        secret = f"{self._secret}\n{message.unsubscribe_url}".strip()
        digest = hmac.new(secret.encode(), f"{key}\n{message.address}".encode(errors="replace"), "sha256")
        return f".{digest.hexdigest()[:SEAL_LENGTH]}" if secret and self._seals else ""

    def _headers(self, message: Message, key: str) -> dict[str, str]:
        headers = {"Message-ID": self.message_id(message, key), "Date": format_datetime(datetime.now(UTC))}
        if thread := [known for known in map(_bracketed, message.thread) if known][-MOST_REFERENCES:]:
            headers["In-Reply-To"], headers["References"] = thread[-1], " ".join(thread)
        if message.unsubscribe_url:
            headers["List-Unsubscribe"] = f"<{message.unsubscribe_url}>"
            headers["List-Unsubscribe-Post"] = "List-Unsubscribe=One-Click"
        return headers


def is_sealed(message_id: str, domain: str) -> bool:
    """Decide whether a Message-ID has the form of ours and is sealed; only the database knows whether it is ours."""
    local, _, place = message_id.strip("<>").rpartition("@")
    return place.lower() == domain.lower() and _SEALED.search(local) is not None


def _subject(message: Message) -> str:
    """Return the subject; mail programs put an answer into its conversation only if its subject says so too."""
    continued = any(map(_bracketed, message.thread)) and not message.subject.lower().startswith("re:")
    return f"Re: {message.subject}" if continued else message.subject


def _bracketed(known: str) -> str:
    """Return an id as a Message-ID; '' for a provider's own id, which no mail program knows."""
    found = f"<{known.strip('<>')}>"
    return found if _MESSAGE_ID.fullmatch(found) else ""


def _header(text: str) -> str:
    """Return the value on one line of a length that mail servers read, without characters that begin a new header."""
    visible = "".join(letter for letter in sendable(text) if letter.isspace() or letter >= " ")
    return " ".join(visible.split())[:LONGEST_SUBJECT]


def written_out(mail: Mail) -> bytes:
    """Return the e-mail as bytes for SMTP."""
    mail.encoding = _QUOTED
    written = io.BytesIO()
    BytesGenerator(written, mangle_from_=False, policy=_LONG_LINES).flatten(mail.message(), linesep="\r\n")
    return written.getvalue()


def mailbox(address: str) -> str:
    """Return the address in the letters that mail servers understand; raise AddressError."""
    local, at, domain = address.strip().rpartition("@")
    if not at or not local or not domain:
        raise AddressError("this is not an e-mail address")
    if not local.isascii():
        raise AddressError("this mailbox has letters before the @ that most mail servers refuse")
    try:
        # IDNA 2008, as everywhere else in HTTP: the standard library would send straße.de's mail to strasse.de.
        host = URL.build(scheme="http", host=domain).raw_host
    except ValueError:
        host = None
    if not host or ".." in f".{host}." or not _MAILBOX.fullmatch(local) or ".." in f".{local}.":
        raise AddressError("this is not an e-mail address")
    return f"{local}@{host}"


def _checked(credentials: Credentials, name: str, label: str) -> str:
    try:
        return mailbox(credentials[name]) if credentials[name] else ""
    except AddressError as error:
        raise CredentialsError(f"{label} is not an e-mail address.") from error


def _attachment(media: MediaRef, content: bytes, image: str) -> MIMEBase:
    """Return the file as an attachment; `image` is the Content-ID of a picture that is shown in the message."""
    main, _, sub = media.content_type.partition("/")
    part = MIMEBase(main, sub) if main in FILES and sub else MIMEBase("application", "octet-stream")
    part.set_payload(content)
    encode_base64(part)
    name = media.filename if media.filename.isascii() else ("utf-8", "", media.filename)
    part.add_header("Content-Disposition", "inline" if image else "attachment", filename=name)
    if image:
        part["Content-ID"] = f"<{image}>"
    return part
