"""Judges what the DNS says about a sender's domain: what mailboxes miss, and which record to change. Pure."""

import re
from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum

MOST_SPF_LOOKUPS = 10  # RFC 7208: with more, receivers give up
SHORTEST_KEY = 160  # bytes of a public RSA key with 1024 bits
LOOKS_UP = re.compile(
    r"^[+?~-]?(include:|a(?:[:/]|$)|mx(?:[:/]|$)|ptr(?::|$)|exists:)|^redirect=", re.IGNORECASE
)
ALL = re.compile(r"^([+?~-]?)all$", re.IGNORECASE)
POLICIES = ("none", "quarantine", "reject")


class Mark(StrEnum):
    """How good a record is."""

    GOOD = "good"
    WARN = "warn"
    BAD = "bad"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The answers of the DNS about a domain. A name that does not exist is an empty list."""

    domain: str
    spf: Sequence[str]  # the TXT records of the domain that begin with v=spf1
    included: Mapping[str, str]  # SPF records that these include, by domain; empty where there is none
    dmarc: Sequence[str]
    dmarc_at: str = ""  # the domain whose DMARC record counts: this one, or one above it
    dkim: Mapping[str, str]  # keys by selector
    selectors: Sequence[str]  # that were looked up
    selector_given: bool = False  # a person entered the selector


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The judgement on one kind of record, with what to change."""

    name: str
    mark: Mark
    says: str
    change: str = ""
    record: str = ""  # a line to copy into the DNS

    def as_json(self) -> dict[str, str]:
        return {name: str(value) for name, value in asdict(self).items()}


def judge(found: Found) -> list[Finding]:
    """Return a finding for SPF, DKIM and DMARC each."""
    return [_spf(found), _dkim(found), _dmarc(found)]


def _spf(found: Found) -> Finding:
    at = f"{found.domain} TXT"
    if not found.spf:
        return Finding(
            name="SPF",
            mark=Mark.BAD,
            says="No SPF record: mailboxes cannot tell which servers may send for this domain.",
            change="Add a TXT record. Your e-mail provider says what to include in it.",
            record=f'{at} "v=spf1 include:spf.your-provider.example ~all"',
        )
    if len(found.spf) > 1:
        return Finding(
            name="SPF",
            mark=Mark.BAD,
            says=f"{len(found.spf)} SPF records: mailboxes then ignore all of them.",
            change="Keep one record, with the parts of all of them.",
        )
    [record] = found.spf
    lookups = _lookups(record, found.included, frozenset())
    if lookups > MOST_SPF_LOOKUPS:
        return Finding(
            name="SPF",
            mark=Mark.BAD,
            says=f"The SPF record leads to {lookups} other lookups; more than {MOST_SPF_LOOKUPS} make it invalid.",
            change="Remove includes of services that no longer send for this domain.",
        )
    return _end_of_spf(record)


def _end_of_spf(record: str) -> Finding:
    """Judge what an SPF record says about all other servers."""
    words = record.split()[1:]
    signs = [match[1] or "+" for word in words if (match := ALL.match(word))]
    redirects = any(word.lower().startswith("redirect=") for word in words)
    if "+" in signs:
        return Finding(
            name="SPF",
            mark=Mark.BAD,
            says="The SPF record allows every server in the world (+all).",
            change="Replace “+all” at its end by “~all”.",
        )
    if signs[-1:] == ["?"] or not (signs or redirects):
        return Finding(
            name="SPF",
            mark=Mark.WARN,
            says="The SPF record does not say what to do with other servers.",
            change="Write “~all” at its end.",
        )
    return Finding(name="SPF", mark=Mark.GOOD, says=f"Found: {record[:200]}")


def _lookups(record: str, included: Mapping[str, str], seen: frozenset[str]) -> int:
    """Return how many lookups a record leads to, with those of the records that it includes."""
    count = 0
    for word in record.split()[1:]:
        if not LOOKS_UP.match(word):
            continue
        count += 1
        target = included_domain(word)
        if target and target not in seen:
            count += _lookups(included.get(target, ""), included, seen | {target})
    return count


def included_domain(word: str) -> str:
    """Return the domain whose SPF record this word of a record refers to; '' for other words."""
    for start in ("include:", "redirect="):
        if word.lower().lstrip("+?~-").startswith(start):
            target = word.lstrip("+?~-")[len(start) :].rstrip(".").lower()
            return "" if "%" in target else target  # a macro depends on the message
    return ""


def _dkim(found: Found) -> Finding:
    if not found.dkim:
        names = ", ".join(found.selectors[:4])
        return Finding(
            name="DKIM",
            mark=Mark.BAD if found.selector_given else Mark.UNKNOWN,
            says=f"No DKIM key under {names}."
            if found.selector_given
            else f"No DKIM key under the usual names ({names}, …). There may be one under another name.",
            change="Switch on DKIM at your e-mail provider and add the record that it shows. "
            "Enter the name of the key (its selector) under Edit.",
        )
    selector, record = next(iter(found.dkim.items()))
    key = _tag(record, "p")
    if not key:
        return Finding(
            name="DKIM",
            mark=Mark.BAD,
            says=f"The DKIM key {selector} was withdrawn (p= is empty).",
            change="Make a new key at your e-mail provider and add its record.",
        )
    if _tag(record, "k") in ("", "rsa") and _is_short(key):
        return Finding(
            name="DKIM",
            mark=Mark.BAD,
            says=f"The DKIM key {selector} is too short, so mailboxes ignore it.",
            change="Make a key of 2048 bits at your e-mail provider.",
        )
    return Finding(name="DKIM", mark=Mark.GOOD, says=f"Found the key {selector}.")


def _is_short(key: str) -> bool:
    try:
        return len(b64decode("".join(key.split()), validate=True)) < SHORTEST_KEY
    except (Base64Error, ValueError):
        return True


def _dmarc(found: Found) -> Finding:
    if not found.dmarc:
        return Finding(
            name="DMARC",
            mark=Mark.BAD,
            says="No DMARC record. Gmail, Yahoo and Outlook ask for one from everybody who sends to many.",
            change="Add a TXT record. With p=none nothing is refused because of it.",
            record=f'_dmarc.{found.domain} TXT "v=DMARC1; p=none"',
        )
    if len(found.dmarc) > 1:
        return Finding(
            name="DMARC",
            mark=Mark.BAD,
            says=f"{len(found.dmarc)} DMARC records: mailboxes then ignore all of them.",
            change="Keep one record.",
        )
    [record] = found.dmarc
    policy = (found.dmarc_at != found.domain and _tag(record, "sp")) or _tag(record, "p")
    if policy.lower() not in POLICIES:
        return Finding(
            name="DMARC",
            mark=Mark.BAD,
            says="The DMARC record has no valid policy (p=).",
            change="Write p=none, p=quarantine or p=reject right after v=DMARC1.",
        )
    if policy.lower() == "none":
        return Finding(
            name="DMARC",
            mark=Mark.WARN,
            says="The DMARC record asks mailboxes to refuse nothing (p=none), which is fine for a start.",
            change="Once SPF and DKIM are good, write p=quarantine, so that others cannot use your address.",
        )
    return Finding(name="DMARC", mark=Mark.GOOD, says=f"Found: {record[:200]}")


def _tag(record: str, name: str) -> str:
    """Return the value of a tag such as p= in a DKIM or DMARC record."""
    pairs = (pair.partition("=") for pair in record.split(";"))
    return next((value.strip() for key, _, value in pairs if key.strip().lower() == name), "")
