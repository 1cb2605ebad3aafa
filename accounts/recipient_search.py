"""Finds recipients by the beginnings of words, by the index `recipient_search`."""

from django.contrib.postgres.search import SearchQuery, SearchVector
from django.db.models import Q, QuerySet

from accounts.models import Recipient


def matching(rows: QuerySet[Recipient], text: str) -> QuerySet[Recipient]:
    """Those whose name or address has a word that begins so, for every word of `text`."""
    words = text.replace("\0", "").split()
    if not words:
        return rows
    vector = SearchVector("name", "address", config="simple")
    beginnings = SearchQuery(" & ".join(map(_beginning, words)), search_type="raw", config="simple")
    rows = rows.alias(words=vector).filter(words=beginnings)
    for word in words:
        if "@" in word:
            rows = rows.filter(Q(address__icontains=word) | Q(name__icontains=word))
    return rows


def _beginning(word: str) -> str:
    """The word as a quoted prefix. The index holds an e-mail address as one word, which a part of its domain
    does not match: so the index finds what stands before the @, and the rest is compared afterwards."""
    found = word.partition("@")[0] or word
    quoted = found.replace("\\", "\\\\").replace("'", "''")
    return f"'{quoted}':*"
