"""E-mail: one mailbox, in lower case, with its domain as the DNS has it.

The part before the @ is lower-cased too. By RFC 5321 a server may treat Anna@ and anna@ as two mailboxes, but no
server in common use does. Two recipients would mean two messages to one person, and one more after an opt-out. Dots
and +tags stay: at most providers they name other mailboxes.
"""

import re
from functools import lru_cache

import idna

from accounts.addresses.form import Address, BadAddressError, plain, shown

NAMED = re.compile(r"^[^<>]*<([^<>]+)>$")
SCHEME = re.compile(r"^mailto:([^?]*).*$", re.IGNORECASE)
# Letters of any language, and what RFC 5322 allows without quotes.
LOCAL = re.compile(r"^[\w!#$%&'*+/=?^`{|}~-]+(\.[\w!#$%&'*+/=?^`{|}~-]+)*$")
DOMAIN = re.compile(r"^([a-z0-9]([a-z0-9-]*[a-z0-9])?\.)+([a-z]{2,}|xn--[a-z0-9-]+)$")

KNOWN_DOMAINS = 4_096  # the rows of a file name few domains, and to encode one takes longer than all else

EXAMPLE = "Write it like anna@example.com."


def canonical(text: str) -> Address:
    text = NAMED.sub(r"\1", SCHEME.sub(r"\1", text)).strip()
    local, at, domain = text.rpartition("@")
    if not at:
        raise BadAddressError(f"{shown(text)} has no @. {EXAMPLE}")
    local = plain(local.lower())
    if not LOCAL.match(local) or len(local) > 64:
        raise BadAddressError(f"{shown(text)} has a name before the @ that is not possible. {EXAMPLE}")
    address = f"{local}@{_domain(domain, text)}"
    if len(address) > 254:
        raise BadAddressError(f"{shown(text)} is longer than an e-mail address can be. {EXAMPLE}")
    return Address(kind="mailbox", text=address)


def _domain(domain: str, text: str) -> str:
    """Return the domain as the DNS has it: München.de is xn--mnchen-3ya.de."""
    found = _encoded(domain.strip().rstrip("."))
    if not DOMAIN.match(found):
        raise BadAddressError(f"{shown(text)} has no domain after the @. {EXAMPLE}")
    return found


@lru_cache(maxsize=KNOWN_DOMAINS)
def _encoded(domain: str) -> str:
    """Return a domain in the letters of the DNS; empty where that is not possible."""
    try:
        return idna.encode(domain, uts46=True).decode()
    except (idna.IDNAError, UnicodeError):
        return ""
