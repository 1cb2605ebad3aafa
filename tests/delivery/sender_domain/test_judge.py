from base64 import b64encode
from dataclasses import replace

import pytest

from delivery.sender_domain.judge import Found, Mark, judge

KEY = b64encode(b"k" * 294).decode()  # of 2048 bits
GOOD = Found(
    domain="school.example",
    spf=["v=spf1 include:spf.provider.example ~all"],
    included={"spf.provider.example": "v=spf1 ip4:192.0.2.0/24 ~all"},
    dmarc=["v=DMARC1; p=reject"],
    dmarc_at="school.example",
    dkim={"s1": f"v=DKIM1; k=rsa; p={KEY}"},
    selectors=("s1",),
)
MANY = {f"i{n}.example": "v=spf1 a mx -all" for n in range(4)}


def marks(found: Found) -> dict[str, Mark]:
    return {finding.name: finding.mark for finding in judge(found)}


def test_a_domain_with_all_three_is_good() -> None:
    assert marks(GOOD) == {"SPF": Mark.GOOD, "DKIM": Mark.GOOD, "DMARC": Mark.GOOD}


@pytest.mark.parametrize(
    ("spf", "included", "mark", "words"),
    [
        ([], {}, Mark.BAD, "No SPF record"),
        (["v=spf1 -all", "v=spf1 a -all"], {}, Mark.BAD, "2 SPF records"),
        (["v=spf1 a +all"], {}, Mark.BAD, "+all"),
        (["v=spf1 a all"], {}, Mark.BAD, "+all"),
        (["v=spf1 a ?all"], {}, Mark.WARN, "other servers"),
        (["v=spf1 a"], {}, Mark.WARN, "other servers"),
        (["v=spf1 a -all"], {}, Mark.GOOD, "Found"),
        (["v=spf1 redirect=other.example"], {}, Mark.GOOD, "Found"),
        # 4 includes and 8 lookups in them.
        ([f"v=spf1 {' '.join('include:' + name for name in MANY)} ~all"], MANY, Mark.BAD, "12 other lookups"),
        # An include of itself is no endless loop.
        (["v=spf1 include:a.example ~all"], {"a.example": "v=spf1 include:a.example"}, Mark.GOOD, "Found"),
        (["v=spf1 ip4:192.0.2.1 -all"], {}, Mark.GOOD, "Found"),
    ],
)
def test_spf(spf: list[str], included: dict[str, str], mark: Mark, words: str) -> None:
    finding = judge(replace(GOOD, spf=spf, included=included))[0]
    assert (finding.mark, words in finding.says) == (mark, True)
    assert bool(finding.change) == (mark is not Mark.GOOD)


@pytest.mark.parametrize(
    ("dkim", "given", "mark", "words"),
    [
        ({}, False, Mark.UNKNOWN, "usual names"),
        ({}, True, Mark.BAD, "No DKIM key under s1"),
        ({"s1": "v=DKIM1; p="}, True, Mark.BAD, "withdrawn"),
        ({"s1": f"v=DKIM1; p={b64encode(b'k' * 94).decode()}"}, True, Mark.BAD, "too short"),
        ({"s1": "v=DKIM1; p=not base64!"}, True, Mark.BAD, "too short"),
        ({"s1": f"k=ed25519; p={b64encode(b'k' * 32).decode()}"}, True, Mark.GOOD, "s1"),
    ],
)
def test_dkim(dkim: dict[str, str], given: bool, mark: Mark, words: str) -> None:
    finding = judge(replace(GOOD, dkim=dkim, selector_given=given))[1]
    assert (finding.mark, words in finding.says) == (mark, True)


@pytest.mark.parametrize(
    ("dmarc", "at", "mark", "words"),
    [
        ([], "", Mark.BAD, "No DMARC"),
        (["v=DMARC1; p=none"], "school.example", Mark.WARN, "p=none"),
        (["v=DMARC1; p=quarantine"], "school.example", Mark.GOOD, "Found"),
        (["v=DMARC1; p=reject; sp=none"], "example", Mark.WARN, "p=none"),
        (["v=DMARC1; p=reject; sp=none"], "school.example", Mark.GOOD, "Found"),
        (["v=DMARC1; rua=mailto:a@b.example"], "school.example", Mark.BAD, "no valid policy"),
        (["v=DMARC1; p=none", "v=DMARC1; p=reject"], "school.example", Mark.BAD, "2 DMARC records"),
    ],
)
def test_dmarc(dmarc: list[str], at: str, mark: Mark, words: str) -> None:
    finding = judge(replace(GOOD, dmarc=dmarc, dmarc_at=at))[2]
    assert (finding.mark, words in finding.says) == (mark, True)
