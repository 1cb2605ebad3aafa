"""Adds and updates recipients by address, many in one statement: for programs that keep a list of their own.

What is left out of a row stays as it is, and consent never changes: nobody is opted in by an update.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db import OperationalError, connection, transaction
from psycopg.errors import LockNotAvailable

from accounts.addresses import BadAddressError, canonical
from accounts.imports.save import LOCK
from accounts.models import Account, User
from accounts.recipients.erased import keep_out
from accounts.regions import region_of
from audit.record import record

FEW = 100
PATIENCE = "10s"  # for an import that is being saved


class ImportGoesOnError(Exception):
    """An import of the same owner is being saved; the text says what to do."""

    def __str__(self) -> str:
        return "An import of this owner is being saved. Try again in a minute."


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """A recipient as a program names it. `name` and `fields` are None where they stay as they are."""

    channel: str
    address: str
    name: str | None = None
    fields: Mapping[str, str] | None = None
    tags: Sequence[str] = ()
    account_id: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The result for one row: its recipient, or why it was refused."""

    id: int | None = None
    address: str = ""
    added: bool = False
    problem: str = ""


@dataclass(slots=True, kw_only=True)
class _Row:
    given: Given
    kind: str = ""
    address: str = ""
    problem: str = ""
    key: tuple[str, str] = field(default=("", ""))


@transaction.atomic
def put(owner: User, rows: Sequence[Given]) -> list[Result]:
    """Save the rows that are right, all in one transaction; return a result for each row in its place."""
    read = list(_read(owner, rows))
    good = {row.key: row for row in read if not row.problem}
    saved = _save(owner, list(good.values())) if good else {}
    _tag(owner, good, saved)
    for channel in {channel for channel, _ in saved}:
        new = {address: pk for (its, address), (pk, made) in saved.items() if made and its == channel}
        keep_out(owner.pk, channel, new)
    if saved:
        added = sum(made for _, made in saved.values())
        counts = {"added": added, "changed": len(saved) - added, "ids": _ends(pk for pk, _ in saved.values())}
        record("recipients.saved", owner_id=owner.pk, after=counts)
    return [_result(row, saved) for row in read]


def _ends(ids: Iterable[int]) -> list[int]:
    """Return the ids if they are few, else the lowest and the highest."""
    found = sorted(ids)
    return found if len(found) <= FEW else [found[0], found[-1]]


def _read(owner: User, rows: Sequence[Given]) -> Iterator[_Row]:
    region, seen = region_of(owner), set[tuple[str, str]]()
    accounts = _accounts(owner, rows)
    for given in rows:
        try:
            found = canonical(given.channel, given.address, region=region)
        except BadAddressError as refusal:
            yield _Row(given=given, problem=str(refusal))
            continue
        key = (given.channel, found.text)
        problem = "This address comes twice in the request. Send it once." if key in seen else ""
        if given.account_id is not None and accounts.get(given.account_id) != given.channel:
            problem = "There is no such account of this owner on this channel."
        seen.add(key)
        yield _Row(given=given, kind=found.kind, address=found.text, key=key, problem=problem)


def _accounts(owner: User, rows: Sequence[Given]) -> dict[int, str]:
    asked = {row.account_id for row in rows if row.account_id is not None}
    found = Account.objects.filter(owner=owner, pk__in=asked).values_list("pk", "channel")
    return dict(found) if asked else {}


# The rows are locked in the order of their addresses, and an import of the owner waits: no two deadlock.
SAVE = """
INSERT INTO accounts_recipient AS p (owner_id, channel, kind, address, name, fields, account_id, attempts, created_at)
SELECT %(owner)s, g.channel, g.kind, g.address, COALESCE(g.name, ''), COALESCE(g.fields, '{}')::jsonb, g.account, 0,
       now()
FROM unnest(%(channels)s::text[], %(kinds)s::text[], %(addresses)s::text[], %(names)s::text[], %(fields)s::text[],
            %(accounts)s::bigint[]) AS g(channel, kind, address, name, fields, account)
ORDER BY g.channel, g.address
ON CONFLICT (owner_id, channel, address) DO UPDATE
SET name = CASE WHEN (SELECT true FROM unnest(%(channels)s::text[], %(addresses)s::text[], %(names)s::text[])
                      AS n(channel, address, name)
                      WHERE n.channel = p.channel AND n.address = p.address AND n.name IS NOT NULL)
                THEN excluded.name ELSE p.name END,
    fields = p.fields || excluded.fields,
    account_id = COALESCE(excluded.account_id, p.account_id),
    archived_at = NULL
RETURNING p.channel, p.address, p.id, p.xmax = 0
"""


def _save(owner: User, rows: Sequence[_Row]) -> dict[tuple[str, str], tuple[int, bool]]:
    given = [row.given for row in rows]
    arguments: dict[str, Any] = {
        "owner": owner.pk,
        "channels": [each.channel for each in given],
        "kinds": [row.kind for row in rows],
        "addresses": [row.address for row in rows],
        "names": [each.name for each in given],
        "fields": [None if each.fields is None else json.dumps(dict(each.fields)) for each in given],
        "accounts": [each.account_id for each in given],
    }
    with connection.cursor() as cursor:
        _wait_for_imports(owner)
        cursor.execute(SAVE, arguments)
        return {(channel, address): (pk, added) for channel, address, pk, added in cursor.fetchall()}


def _wait_for_imports(owner: User) -> None:
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(f"SET LOCAL lock_timeout = '{PATIENCE}'")
            cursor.execute(LOCK, {"owner": owner.pk})
            cursor.execute("SET LOCAL lock_timeout = DEFAULT")
    except OperationalError as error:
        if isinstance(error.__cause__, LockNotAvailable):
            raise ImportGoesOnError from error
        raise


TAGS = """
INSERT INTO accounts_tag (owner_id, name)
SELECT %(owner)s, name FROM unnest(%(names)s::text[]) AS name ORDER BY name
ON CONFLICT (owner_id, name) DO NOTHING
"""
TIES = """
INSERT INTO accounts_recipient_tags (recipient_id, tag_id)
SELECT tied.recipient, t.id
FROM unnest(%(recipients)s::bigint[], %(tags)s::text[]) AS tied(recipient, tag)
JOIN accounts_tag t ON t.owner_id = %(owner)s AND t.name = tied.tag
ON CONFLICT DO NOTHING
"""


def _tag(
    owner: User, good: Mapping[tuple[str, str], _Row], saved: Mapping[tuple[str, str], tuple[int, bool]]
) -> None:
    ties = [(saved[key][0], tag) for key, row in good.items() for tag in row.given.tags]
    if not ties:
        return
    names = sorted({tag for _, tag in ties})
    with connection.cursor() as cursor:
        cursor.execute(TAGS, {"owner": owner.pk, "names": names})
        arguments: dict[str, Any] = {
            "owner": owner.pk,
            "recipients": [pk for pk, _ in ties],
            "tags": [tag for _, tag in ties],
        }
        cursor.execute(TIES, arguments)


def _result(row: _Row, saved: Mapping[tuple[str, str], tuple[int, bool]]) -> Result:
    if row.problem:
        return Result(problem=row.problem)
    pk, added = saved[row.key]
    return Result(id=pk, address=row.address, added=added)
