"""Finds recipients by the beginnings of words, by the index `recipient_search`."""

from collections.abc import Sequence

from django.contrib.postgres.search import SearchQuery, SearchVector
from django.db import connection
from django.db.models import Case, Max, Min, Q, QuerySet, When

from accounts.addresses import BadAddressError, canonical
from accounts.models import Recipient

FEW = 1_000
LONGEST, MOST_WORDS = 500, 20  # of a search: each word is a condition for the database
VECTOR = SearchVector("name", "address", config="simple")
SMALL = 50_000
SAMPLE = 400  # rows from all over the table
EARLY = SAMPLE // 10
OFTEN = 0.1  # of the early rows
STRIDE = 7919  # a prime, so that no rhythm in the ids hides what is there


def matching(
    rows: QuerySet[Recipient], text: str, *, region: str = "", by: str = "name"
) -> QuerySet[Recipient]:
    """Return the rows in which every word of `text` begins a word of the name or address; the list is sorted by `by`.

    A phone number is found in any notation; without a country code it is taken as a number of `region`.

    The planner takes every unknown word for a common one, and prefers to read all recipients in the order of the
    list: that takes seconds if no row matches, or only late ones. A sample decides whether the plan is right.
    """
    text = text[:LONGEST]
    words = text.replace("\0", "").split()[:MOST_WORDS]
    if not words:
        return rows
    if number := _number(text, region):
        words = [number]
    if _soon_found(rows, words, by):
        return rows.alias(words=VECTOR).alias(found=_found(words)).filter(found=True)
    few = _few(with_beginnings(Recipient.objects.order_by(), words))
    return with_beginnings(rows, words) if few is None else rows.filter(pk__in=few)


def _soon_found(rows: QuerySet[Recipient], words: Sequence[str], by: str) -> bool:
    """Tell whether a page is filled from the beginning of the list, so that no index must be read to its end."""
    ends = Recipient.objects.aggregate(first=Min("pk"), last=Max("pk"))
    step = ((ends["last"] or 0) - (ends["first"] or 0)) // SAMPLE
    if step < max(1, SMALL // SAMPLE):
        return False  # so few rows that it does not matter
    places = [ends["first"] + each * step + each * STRIDE % step for each in range(SAMPLE)]
    spread = rows.order_by(by).filter(pk__in=places)
    early = spread.alias(words=VECTOR).values_list(_found(words), flat=True)[:EARLY]
    return sum(map(bool, early)) >= OFTEN * EARLY


def _few(found: QuerySet[Recipient]) -> list[int] | None:
    """Return the ids of all rows found if they are few, else None. MATERIALIZED makes the database use the index."""
    sql, params = found.values_list("pk").query.sql_with_params()
    with connection.cursor() as cursor:
        cursor.execute(
            f"WITH found AS MATERIALIZED ({sql}) SELECT * FROM found LIMIT %s",  # noqa: S608 - Django's own words
            [*params, FEW + 1],
        )
        ids = [row[0] for row in cursor.fetchall()]
    return ids if len(ids) <= FEW else None


def with_beginnings(rows: QuerySet[Recipient], words: Sequence[str]) -> QuerySet[Recipient]:
    """Filter by a condition that the index `recipient_search` can answer."""
    return rows.alias(words=VECTOR).filter(_beginning_with(words))


def _found(words: Sequence[str]) -> Case:
    """Return the same condition as a value, which no index can answer."""
    return Case(When(_beginning_with(words), then=True), default=False)


def _beginning_with(words: Sequence[str]) -> Q:
    beginnings = SearchQuery(" & ".join(map(_beginning, words)), search_type="raw", config="simple")
    condition = Q(words=beginnings)
    for word in words:
        if "@" in word:
            condition &= Q(address__icontains=word) | Q(name__icontains=word)
    return condition


def _number(text: str, region: str) -> str:
    """Return the whole text as one phone number, or '' if it is not one."""
    try:
        found = canonical("whatsapp", text, region=region).text
    except BadAddressError:
        return ""
    return found if found.startswith("+") else ""


def _beginning(word: str) -> str:
    """Return the word as a quoted prefix; digits may follow a plus.

    The index holds an e-mail address as one word, which a part of its domain does not match. So the index finds the
    part before the @, and the rest is compared afterwards.
    """
    found = word.partition("@")[0] or word
    quoted = found.replace("\\", "\\\\").replace("'", "''")
    return f"('{quoted}':* | '+{quoted}':*)" if found.isdecimal() else f"'{quoted}':*"
