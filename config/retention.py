"""Reads how long each kind of data is kept: `KEEP_DAYS_OF=replies=90,imports=7`. Pure."""

from collections.abc import Mapping, Sequence

from django.core.exceptions import ImproperlyConfigured

# The fewest days of each kind. Limits over weeks and months count from the ledger, and services report again for days.
FEWEST: Mapping[str, int] = {
    "attempts": 35,
    "targets": 35,
    "replies": 35,
    "reply-texts": 1,
    "notifications": 1,
    "imports": 1,
    "account-days": 35,
    "tests": 2,
    "group-readings": 1,
    "webhooks": 4,
    "notices": 2,
}
MOST = 36_500


def days_of(words: Sequence[str]) -> dict[str, int]:
    """Return the days by kind; raises ImproperlyConfigured, which says what is wrong and what is possible."""
    return dict(_one(word) for word in words)


def _one(word: str) -> tuple[str, int]:
    kind, _, number = (part.strip() for part in word.partition("="))
    if kind not in FEWEST:
        raise ImproperlyConfigured(
            f"KEEP_DAYS_OF has {kind!r}: write kinds with their days, such as replies=90. The kinds are "
            f"{', '.join(sorted(FEWEST))}."
        )
    if not (number.isascii() and number.isdigit()):
        raise ImproperlyConfigured(
            f"KEEP_DAYS_OF has {word!r}: write the days as a number, such as {kind}=90."
        )
    days = int(number)
    if days and not FEWEST[kind] <= days <= MOST:
        raise ImproperlyConfigured(
            f"KEEP_DAYS_OF has {kind}={days}: use {FEWEST[kind]} to {MOST}, or 0 to keep them for ever."
        )
    return kind, days
