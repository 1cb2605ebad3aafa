"""Finds recipients by the beginnings of words, by the index `recipient_search`."""

from collections.abc import Sequence

from django.contrib.postgres.search import SearchQuery, SearchVector
from django.db import connection
from django.db.models import Q, QuerySet

from accounts.addresses import BadAddressError, canonical
from accounts.models import Recipient

FEW = 1_000


def matching(rows: QuerySet[Recipient], text: str, *, region: str = "") -> QuerySet[Recipient]:
    """Those whose name or address has a word that begins so, for every word of `text`.

    A phone number is found however it is written; without a country code, as one of `region`.
    """
    words = text.replace("\0", "").split()
    if not words:
        return rows
    if number := _number(text, region):
        words = [number]
    few = _few(with_beginnings(Recipient.objects.order_by(), words))
    return with_beginnings(rows, words) if few is None else rows.filter(pk__in=few)


def _few(found: QuerySet[Recipient]) -> list[int] | None:
    """The ids of all that were found, if they are few; None if they are many.

    The planner takes every unseen word for a common one, and would rather read all recipients in the order of the
    list, looking for it: seconds, where there is none. Materialized, it asks the index. For a word that really
    is common it is right, and finds the first page at once.
    """
    sql, params = found.values_list("pk").query.sql_with_params()
    with connection.cursor() as cursor:
        cursor.execute(
            f"WITH found AS MATERIALIZED ({sql}) SELECT * FROM found LIMIT %s",  # noqa: S608 - Django's own words
            [*params, FEW + 1],
        )
        ids = [row[0] for row in cursor.fetchall()]
    return ids if len(ids) <= FEW else None


def with_beginnings(rows: QuerySet[Recipient], words: Sequence[str]) -> QuerySet[Recipient]:
    """The condition that the index `recipient_search` answers."""
    vector = SearchVector("name", "address", config="simple")
    beginnings = SearchQuery(" & ".join(map(_beginning, words)), search_type="raw", config="simple")
    rows = rows.alias(words=vector).filter(words=beginnings)
    for word in words:
        if "@" in word:
            rows = rows.filter(Q(address__icontains=word) | Q(name__icontains=word))
    return rows


def _number(text: str, region: str) -> str:
    """The whole text as one phone number, if it is one."""
    try:
        found = canonical("whatsapp", text, region=region).text
    except BadAddressError:
        return ""
    return found if found.startswith("+") else ""


def _beginning(word: str) -> str:
    """The word as a quoted prefix; digits may stand behind a plus.

    The index holds an e-mail address as one word, which a part of its domain does not match: so the index finds
    what stands before the @, and the rest is compared afterwards.
    """
    found = word.partition("@")[0] or word
    quoted = found.replace("\\", "\\\\").replace("'", "''")
    return f"('{quoted}':* | '+{quoted}':*)" if found.isdecimal() else f"'{quoted}':*"
