"""Reads the e-mails in a mailbox as events: answers of people, failed deliveries and complaints.

Strangers write these e-mails, so they are read within fixed bounds (`mail/mime.py`), and one that cannot be read is
skipped with a reason: one e-mail never stops those behind it.
"""

import hashlib
import logging
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from email.utils import getaddresses
from enum import StrEnum

from delivery.outcomes import is_dead_status
from delivery.transports.base import Inbound, InboundEvent, Receipt, ReceiptState, sendable
from delivery.transports.mail.authentication import Verdict, verdict
from delivery.transports.mail.automatic import is_automatic
from delivery.transports.mail.composing import is_sealed
from delivery.transports.mail.mime import Part, groups_of, part_of, parts_of
from delivery.transports.mail.page_words import words_of
from delivery.transports.mail.quoting import own_words

logger = logging.getLogger(__name__)

_ID = re.compile(r"<[^<>\s]{1,250}>")
# How mail programs begin the subject of an answered or forwarded e-mail.
_AGAIN = re.compile(
    r"(re|aw|wg|sv|vs|antw|res|rv|tr|fw|fwd|doorst|ynt|odp|bls|pd|rif|r|i|回复|回覆|答复|转发|返信|رد)\s?(\[\d+\])?\s?[:\uff1a]",
    re.IGNORECASE,
)
# What mail servers put before the subject of an e-mail from outside.
_TAGS = re.compile(
    r"\s*([\[(*]{1,3}\s?(ext|external|extern|externe|externo|esterno|external (e-?mail|sender)|spam|suspected spam)"
    r"\s?[\])*]{1,3}[:\s]*)+",
    re.IGNORECASE,
)
LONGEST_SENDER = 1_000
_ENHANCED = re.compile(r"\b5\.\d{1,3}\.\d{1,3}\b")
COMPLAINTS = frozenset({"abuse", "fraud"})


class PassedOver(StrEnum):
    """The reason why an e-mail is not an event."""

    OWN = "our own"
    AUTOMATIC = "automatic"
    NOT_BELIEVED = "not believed"
    NO_FAILURE = "no failure of ours"  # a report of a delay or a success, or about somebody else's e-mail
    UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """The mailbox's owner: our addresses, the domain of our Message-IDs, and whose checks of senders are trusted."""

    own: frozenset[str]
    domain: str
    trusted: str = ""


def event_of(raw: bytes, *, reader: Reader, now: datetime) -> InboundEvent | PassedOver:
    """Return the event in an e-mail, or why there is none; never raises for the content of an e-mail."""
    try:
        mail = part_of(raw)
        name = mail.first("message-id") or hashlib.sha256(raw).hexdigest()
        if mail.kind == "multipart/report":
            return _report(mail, name, now)
        return _reply(mail, name, reader, now)
    except Exception:
        # Whatever the error is, the e-mails behind this one must be read.
        digest = hashlib.sha256(raw).hexdigest()
        logger.exception("An e-mail of %d bytes cannot be read (SHA-256 %s)", len(raw), digest)
        return PassedOver.UNREADABLE


def _reply(mail: Part, name: str, reader: Reader, now: datetime) -> Inbound | PassedOver:
    senders = [address.lower() for _, address in getaddresses([_from(mail)]) if address]
    if not senders:
        return PassedOver.UNREADABLE
    if len(senders) > 1 or len(mail.all("from")) > 1:
        return PassedOver.NOT_BELIEVED  # programs differ in which of them they take as the sender
    [sender] = senders
    if sender in reader.own:
        return PassedOver.OWN
    if is_automatic(mail, sender):
        return PassedOver.AUTOMATIC
    return _believed(mail, name, sender, reader, now)


def _believed(mail: Part, name: str, sender: str, reader: Reader, now: datetime) -> Inbound | PassedOver:
    """Return the reply, as far as its sender is trusted (docs/conversations.md has the table)."""
    found = verdict(mail, trusted=reader.trusted, domain=sender.rpartition("@")[2])
    answers = next(_answered(mail, reader.domain), "")
    unproven = bool(reader.trusted) and found is Verdict.UNKNOWN
    if found is Verdict.FAILED or (unproven and not answers):
        return PassedOver.NOT_BELIEVED
    who = "" if unproven else sender  # then only the answered message tells whose reply this is
    subject = mail.words("subject")
    fresh = fresh_subject(subject)
    words = own_words(_words(mail))
    return Inbound(
        event_id=name,
        provider_id=name,
        sender=who,
        chat=who,
        text=words or fresh,
        at=now,
        subject=fresh,
        answers=answers,
    )


def fresh_subject(subject: str) -> str:
    """Return a subject that the writer chose; empty where it is the one of an answered or forwarded e-mail."""
    chosen = _TAGS.sub("", subject[:LONGEST_SENDER], count=1) if _TAGS.match(subject) else subject
    return "" if _AGAIN.match(chosen) else sendable(chosen)[:200]


def _from(mail: Part) -> str:
    return mail.first("from")[:LONGEST_SENDER]


def _answered(mail: Part, domain: str) -> Iterator[str]:
    """Return our Message-IDs that the e-mail answers, the last one first; only those that cannot be guessed."""
    last_first = [*_ID.findall(mail.first("in-reply-to")), *reversed(_ID.findall(mail.first("references")))]
    return (name for name in last_first if is_sealed(name, domain))


def _report(mail: Part, name: str, now: datetime) -> Receipt | PassedOver:
    """Return the receipt where the e-mail reports that one of our messages failed for good, or was unwanted."""
    parts = parts_of(mail)
    ours = next((found for part in parts if (found := _original_id(part))), "")
    told = _complaint(parts) or _failure(parts)
    if told is None or not ours:
        return PassedOver.NO_FAILURE
    state, reason = told
    words = " ".join(sendable(reason).split())[:200]
    return Receipt(event_id=name, provider_id=ours, state=state, at=now, reason=words)


def _failure(parts: Sequence[Part]) -> tuple[ReceiptState, str] | None:
    """Return what a report of delivery says of the first recipient who failed (RFC 3464); None where nobody did."""
    told = [
        group for part in _of_kind(parts, "message/delivery-status") for group in groups_of(part.content())
    ]
    failed = next((group for group in told if group.first("action").lower() == "failed"), None)
    if failed is None:
        return None
    status, reason = failed.first("status"), failed.first("diagnostic-code")
    # Many servers report 5.0.0, and say more in the answer that they quote.
    dead = any(is_dead_status(code) for code in (status.strip(), *_ENHANCED.findall(reason)))
    return (ReceiptState.BOUNCED if dead else ReceiptState.FAILED), reason or status


def _complaint(parts: Sequence[Part]) -> tuple[ReceiptState, str] | None:
    """Return the complaint in a feedback report of a mail provider (RFC 5965); None where there is none."""
    for part in _of_kind(parts, "message/feedback-report"):
        for group in groups_of(part.content()):
            if group.first("feedback-type").strip().lower() in COMPLAINTS:
                return ReceiptState.COMPLAINED, "the recipient marked the e-mail as spam"
    return None


def _of_kind(parts: Sequence[Part], kind: str) -> Iterator[Part]:
    return (part for part in parts if part.kind == kind)


def _original_id(part: Part) -> str:
    """Return the Message-ID of the returned e-mail, which is whole or only its headers."""
    if part.kind not in {"message/rfc822", "text/rfc822-headers", "message/rfc822-headers"}:
        return ""
    return part_of(part.content().lstrip(b"\r\n")).first("message-id")


def _words(mail: Part) -> str:
    """Return the text of an e-mail; where it has only HTML, the words of that."""
    texts = [part for part in parts_of(mail) if not part.attached]
    plain = next((part.text() for part in texts if part.kind == "text/plain"), "")
    if plain.strip():
        return sendable(plain)
    page = next((part.text() for part in texts if part.kind == "text/html"), "")
    return sendable(words_of(page))
