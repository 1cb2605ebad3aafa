"""What came into a mailbox, as events: what people answer, and what could not be delivered."""

import hashlib
import re
from collections.abc import Iterator
from datetime import datetime
from email import message_from_bytes, policy
from email.message import EmailMessage, Message
from email.utils import parseaddr

from delivery.transports.base import Inbound, InboundEvent, Receipt, ReceiptState, sendable

# What programs write below an answer, before what they quote.
_QUOTED = re.compile(r"^(>|-{2,}\s*(original|forwarded|urspr)|_{10,}$|(from|von|de):\s.*@)", re.IGNORECASE)
_TAG = re.compile(r"<(style|script|blockquote).*?</\1>|<br\s*/?>|</p>|<[^>]*>", re.IGNORECASE | re.DOTALL)


def event_of(raw: bytes, *, own: str, now: datetime) -> InboundEvent | None:
    """The event that a message is; None of what we sent ourselves, and of what a machine answers by itself."""
    try:
        mail = message_from_bytes(raw, policy=policy.default)
        assert isinstance(mail, EmailMessage)  # noqa: S101 - for types: the policy says so
        name = str(mail["Message-ID"] or hashlib.sha256(raw).hexdigest()).strip()
        if mail.get_content_type() == "multipart/report":
            return _bounce(mail, name, now)
        return None if _is_automatic(mail) else _reply(mail, name, own, now)
    except (LookupError, ValueError, TypeError, AttributeError):
        return None  # Python's own reading of it fails: nobody wrote that with a mail program


def _reply(mail: EmailMessage, name: str, own: str, now: datetime) -> Inbound | None:
    sender = parseaddr(str(mail["From"] or ""))[1].lower()
    if not sender or sender == own.lower():
        return None
    return Inbound(
        event_id=name, provider_id=name, sender=sender, chat=sender, text=_answer(_words(mail)), at=now
    )


def _is_automatic(mail: EmailMessage) -> bool:
    """Somebody is on holiday, or a list passes it on (RFC 3834): no person answered us."""
    said = str(mail["Auto-Submitted"] or "no").lower()
    return said != "no" or str(mail["Precedence"] or "").lower() in {"bulk", "list", "junk", "auto_reply"}


def _bounce(mail: EmailMessage, name: str, now: datetime) -> Receipt | None:
    """A report that one of our messages failed for good; others are about a delay, or a success."""
    told = [part for part in mail.walk() if "Action" in part]
    failed = next((part for part in told if str(part["Action"]).strip().lower() == "failed"), None)
    ours = next(_original_ids(mail), "")
    if failed is None or not ours:
        return None
    reason = str(failed["Diagnostic-Code"] or failed["Status"] or "")
    return Receipt(
        event_id=name,
        provider_id=ours,
        state=ReceiptState.FAILED,
        at=now,
        reason=" ".join(sendable(reason).split())[:200],
    )


def _original_ids(mail: Message) -> Iterator[str]:
    """The Message-ID of what came back, which is whole or only its headers."""
    for part in mail.walk():
        if part.get_content_type() == "text/rfc822-headers":
            part = message_from_bytes(part.get_payload(decode=True) or b"")  # type: ignore[arg-type]  # a leaf  # noqa: PLW2901
        if part is not mail and part["Message-ID"]:
            yield str(part["Message-ID"]).strip()


def _words(mail: EmailMessage) -> str:
    body = mail.get_body(("plain", "html"))
    words = str(body.get_content()) if body is not None else ""
    if body is not None and body.get_content_subtype() == "html":
        words = _TAG.sub(lambda tag: "\n" if tag[0].lower().startswith(("<br", "</p")) else "", words)
    return sendable(words)


def _answer(words: str) -> str:
    """What was written above the quotation, without the line that introduces it."""
    lines = words.splitlines()
    end = next((number for number, line in enumerate(lines) if _QUOTED.match(line)), len(lines))
    above = "\n".join(lines[:end]).rstrip()
    if end < len(lines) and above.endswith(":"):
        above = above.rpartition("\n\n")[0] if "\n\n" in above else above.rpartition("\n")[0]
    return above.strip()
