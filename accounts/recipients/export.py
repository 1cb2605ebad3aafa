"""Writes recipients as lines of a file that can be imported again."""

from collections.abc import Iterator

from django.contrib.postgres.aggregates import ArrayAgg
from django.db.models import F, Q, QuerySet

from accounts.models import Recipient
from accounts.recipients.states import state_now

TITLES = ("address", "name", "tags", "channel", "kind", "state", "account", "undeliverable_for")
CHUNK = 2_000


def export_lines(recipients: QuerySet[Recipient]) -> Iterator[tuple[object, ...]]:
    """Yield the titles, then a line for each recipient; each variable that any recipient has is a column."""
    variables = _variables(recipients)
    yield (*TITLES, *variables)
    rows = (
        recipients.order_by("pk")
        .annotate(
            state=state_now(),
            account_name=F("account__name"),
            tag_names=ArrayAgg("tags__name", filter=Q(tags__isnull=False), order_by="tags__name", default=[]),
        )
        .values_list(
            *("address", "name", "tag_names", "channel", "kind", "state", "account_name"),
            *("undeliverable_for", "fields"),
        )
    )
    for address, name, tags, channel, kind, state, account, dead, fields in rows.iterator(CHUNK):
        known = (fields.get(variable, "") for variable in variables)
        yield (address, name, "; ".join(tags), channel, kind, state, account or "", dead, *known)


def _variables(recipients: QuerySet[Recipient]) -> list[str]:
    names: set[str] = set()
    for fields in recipients.order_by().exclude(fields={}).values_list("fields", flat=True).iterator(CHUNK):
        names.update(fields)
    return sorted(names)
