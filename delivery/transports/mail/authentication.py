"""Reads what the receiving mail server found out about the sender (RFC 8601): whether to trust an e-mail.

Anybody can write any sender into an e-mail, and any Authentication-Results as well. The result of the mailbox's own
server stands in the topmost such header, since servers add theirs on top.
"""

from enum import StrEnum

from delivery.transports.mail.mime import Part

MOST_RESULTS = 50


class Verdict(StrEnum):
    """The result of the check of the sender."""

    PASSED = "passed"  # the sender's domain confirms it
    FAILED = "failed"  # the sender's domain says that it is forged
    UNKNOWN = "unknown"  # the server did not check, or the domain says nothing


def verdict(mail: Part, *, trusted: str, domain: str) -> Verdict:
    """Return what the receiving server says about DMARC.

    `trusted` is the server's name for itself in these headers; where it is not known, the topmost header counts. In a
    header that may be anybody's only a failure counts: nobody gains by adding a failure to their own e-mail.
    """
    found = [_read(value) for value in mail.all("authentication-results")]
    if trusted:
        ours = [results for name, results in found if name == trusted.lower()]
        return _judged(ours[0], domain) if ours else Verdict.UNKNOWN
    top = _judged(found[0][1], domain) if found else Verdict.UNKNOWN
    return top if top is Verdict.FAILED else Verdict.UNKNOWN


def _judged(results: list[str], domain: str) -> Verdict:
    words = next((result.split() for result in results if result.startswith("dmarc=")), [])
    said = words[0].removeprefix("dmarc=") if words else ""
    checked = next((_domain(word) for word in words if word.startswith("header.from=")), domain)
    if said == "fail" or not f".{domain}".endswith(f".{checked}"):
        return Verdict.FAILED  # also where the server names another sender
    return Verdict.PASSED if said == "pass" else Verdict.UNKNOWN


def _domain(word: str) -> str:
    """Return the domain in `header.from=`; some servers write the whole address, quotes or a dot at the end."""
    return word.partition("=")[2].strip("\"'<>").rpartition("@")[2].rstrip(".")


def _read(value: str) -> tuple[str, list[str]]:
    """Return the name of the server, empty where it gives none, and its results, without remarks in brackets."""
    name, *results = [" ".join(each.split()).lower() for each in _plain(value).split(";", MOST_RESULTS)]
    if "=" in name:  # as Exchange writes it
        return "", [name, *results]
    return name.partition(" ")[0], results


def _plain(value: str) -> str:
    """Return the value without remarks in brackets, which may be nested."""
    kept, depth = [], 0
    for letter in value:
        depth = max(depth + (letter == "(") - (letter == ")"), 0)
        if not depth and letter != ")":
            kept.append(letter)
    return "".join(kept)
