"""Asks the DNS about a sender's domain: a few questions at once, each with a time limit.

Only TXT records are asked for, from the servers of this machine or of DNS_SERVERS. The names come from people, but no
connection is ever made to what they lead to.
"""

import asyncio
from collections.abc import Sequence

from dns.asyncresolver import Resolver
from dns.exception import DNSException
from dns.nameserver import Do53Nameserver
from dns.resolver import NXDOMAIN, NoAnswer, NoNameservers, NoResolverConfiguration

from delivery.sender_domain.judge import Found, included_domain

SECONDS = 5.0  # for one question, with its repetitions
LONGEST = 15.0  # for all of them
MOST_INCLUDED = 20
USUAL_SELECTORS = (
    "google", "selector1", "selector2", "default", "dkim", "mail", "s1", "s2", "k1", "k2", "k3",
    "mailjet", "mandrill", "brevo1", "brevo2", "resend", "mte1", "pm", "scph0316", "zoho",
)  # fmt: skip


class NoDnsAnswerError(Exception):
    """Raised when the DNS could not be asked; the text says why."""


async def look_up(domain: str, *, selector: str, servers: Sequence[str]) -> Found:
    """Return what the DNS says about a domain; raise NoDnsAnswerError. Without a selector the usual ones are tried."""
    questions = Questions(servers)
    selectors = (selector,) if selector else USUAL_SELECTORS
    try:
        async with asyncio.timeout(LONGEST):
            spf, (dmarc, at), dkim = await asyncio.gather(
                questions.txt(domain, starts="v=spf1"),
                questions.dmarc(domain),
                questions.dkim(domain, selectors),
            )
            included = await questions.included(spf)
    except TimeoutError:
        raise NoDnsAnswerError("The DNS did not answer in time") from None
    return Found(
        domain=domain,
        spf=spf,
        included=included,
        dmarc=dmarc,
        dmarc_at=at,
        dkim=dkim,
        selectors=selectors,
        selector_given=bool(selector),
    )


class Questions:
    """Questions to the DNS about TXT records."""

    def __init__(self, servers: Sequence[str]) -> None:
        try:
            self._resolver = Resolver(configure=not servers)
        except NoResolverConfiguration:
            raise NoDnsAnswerError("This machine knows no DNS server; set DNS_SERVERS") from None
        if servers:
            self._resolver.nameservers = [_server(server) for server in servers]
        self._resolver.lifetime = SECONDS

    async def txt(self, name: str, *, starts: str = "") -> list[str]:
        """Return the TXT records of a name that begin so; none where the name does not exist."""
        try:
            answer = await self._resolver.resolve(name, "TXT", search=False)
        except (NXDOMAIN, NoAnswer):
            return []
        except NoNameservers as error:
            raise NoDnsAnswerError(f"The DNS has no answer for {name}") from error
        except (DNSException, OSError, ValueError) as error:
            raise NoDnsAnswerError(f"The DNS did not answer for {name} ({type(error).__name__})") from error
        found = [b"".join(record.strings).decode(errors="replace") for record in answer]
        return [text for text in found if _begins(text, starts)]

    async def dmarc(self, domain: str) -> tuple[list[str], str]:
        """Return the DMARC records that count for a domain, and whose they are: its own, or of a domain above it."""
        labels = domain.split(".")
        for start in range(max(1, len(labels) - 1)):
            above = ".".join(labels[start:])
            if found := await self.txt(f"_dmarc.{above}", starts="v=DMARC1"):
                return found, above
        return [], ""

    async def dkim(self, domain: str, selectors: Sequence[str]) -> dict[str, str]:
        """Return the first key of each selector that has one; of several guesses, some may get no answer."""
        names = [f"{selector}._domainkey.{domain}" for selector in selectors]
        ask = self.txt if len(names) == 1 else self._guessed
        answers = await asyncio.gather(*map(ask, names))
        keys = zip(selectors, answers, strict=True)
        return {selector: found for selector, texts in keys for found in texts[:1] if "p=" in found}

    async def _guessed(self, name: str) -> list[str]:
        """Return the TXT records of a name that may not exist: some servers answer such a question with an error."""
        try:
            return await self.txt(name)
        except NoDnsAnswerError:
            return []

    async def included(self, records: Sequence[str]) -> dict[str, str]:
        """Return the SPF records that these include, and those that they include in turn."""
        found: dict[str, str] = {}
        waiting = list(records[:1])
        while waiting and len(found) < MOST_INCLUDED:
            words = waiting.pop(0).split()[1:]
            wanted = [target for target in map(included_domain, words) if target and target not in found]
            for target in wanted[: MOST_INCLUDED - len(found)]:
                texts = await self.txt(target, starts="v=spf1")
                found[target] = texts[0] if texts else ""
                waiting.append(found[target])
        return found


def _begins(text: str, starts: str) -> bool:
    """Decide whether a record is of a kind: `v=spf1 …`, but not `v=spf10`."""
    if not text.lower().startswith(starts.lower()):
        return False
    return not starts or text[len(starts) : len(starts) + 1] in ("", " ", ";")


def _server(server: str) -> Do53Nameserver:
    """Return a name server from `1.1.1.1`, `127.0.0.1:5353` or `[::1]:53`."""
    if server.startswith("[") or server.count(":") == 1:
        host, _, port = server.rpartition(":")
        return Do53Nameserver(host.strip("[]"), int(port))
    return Do53Nameserver(server, 53)
