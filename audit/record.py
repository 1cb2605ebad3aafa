"""Records a change in the transaction of the change: the action functions of every door call `record`.

What the system changes by itself (a cron moment, the engine, a report of a service) is not recorded here: there are
the ledger, the runs and the changes of consent for it. So `record` returns at once in a worker.
"""

import json
from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any

from django.core.serializers.json import DjangoJSONEncoder
from django.db.models import Model
from django.utils import timezone

from audit.actions import ACTIONS
from audit.models import Entry, PersonalValues
from audit.origin import Door, origin

Values = Mapping[str, Any]

MASK = "••••"
SECRETS = ("password", "secret", "token", "credential", "digest", "private", "api_key")
PERSONAL = frozenset({"recipient"})  # models whose values may be erased
LONGEST = 2_000  # characters of one value


def record(
    action: str,
    thing: Model | None = None,
    *,
    by: Any = None,
    owner_id: int | None = None,
    before: Values | None = None,
    after: Values | None = None,
    note: str = "",
    quiet: timedelta | None = None,
) -> None:
    """Record that somebody did `action` to `thing`; `before` and `after` hold the values that changed.

    `by` is the person; where it is not given, it is the person of the request. Nothing is recorded where nobody is
    behind the change. With `quiet`, a person who did the same to the same thing so recently is not recorded again.
    """
    if action not in ACTIONS:
        raise KeyError(f"Add {action} to audit/actions.py.")
    where = origin()
    person = by if by is not None else _logged_in(where.person)
    if person is None and where.door == Door.SYSTEM:
        return
    if quiet is not None and thing is not None and _did_recently(person, action, thing, quiet):
        return
    kind = thing._meta.model_name or "" if thing is not None else ""
    personal = kind in PERSONAL
    entry = Entry.objects.create(
        at=timezone.now(),
        owner_id=owner_id or _owner_of(thing),
        actor_id=getattr(person, "pk", None),
        actor_name=person.get_username() if person is not None else "",
        door=where.door,
        via=where.via[:200],
        address=where.address[:45],
        action=action,
        thing_type=kind,
        thing_id=thing.pk if thing is not None else None,
        thing_name="" if thing is None or personal else str(thing)[:200],
        before=None if personal else shown(before),
        after=None if personal else shown(after),
        note="" if personal else note[:500],
    )
    if personal and thing is not None and (before or after or note):
        PersonalValues.objects.create(
            entry=entry,
            owner_id=entry.owner_id,
            recipient_id=thing.pk,
            before=shown(before),
            after=shown(after),
            note=note[:500],
        )


def _did_recently(person: Any, action: str, thing: Model, within: timedelta) -> bool:
    same = Entry.objects.filter(thing_type=thing._meta.model_name, thing_id=thing.pk, action=action)
    return same.filter(actor=person, at__gt=timezone.now() - within).exists()


def shown(values: Values | None) -> dict[str, Any] | None:
    """Return values as they are stored: secrets masked, long texts cut, everything fit for JSON."""
    if not values:
        return None
    masked = {name: MASK if _is_secret(name) and value else value for name, value in values.items()}
    cut = {name: _cut(value) for name, value in masked.items()}
    return json.loads(json.dumps(cut, cls=DjangoJSONEncoder, default=str))  # type: ignore[no-any-return]


def differing(before: Values, after: Values) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return both sides of what changed."""
    names = [name for name in after if before.get(name) != after[name]]
    return {name: before.get(name) for name in names}, {name: after[name] for name in names}


def values_of(row: Model, names: Iterable[str]) -> dict[str, Any]:
    """Return the values of some columns of a row; related rows by their text."""
    found = {name: getattr(row, name) for name in names}
    return {name: str(value) if isinstance(value, Model) else value for name, value in found.items()}


def stored(row: Model, names: Iterable[str]) -> dict[str, Any]:
    """Return the values of some columns as the database has them now; empty for a row that is not saved yet."""
    found = type(row)._base_manager.filter(pk=row.pk).values(*names).first() if row.pk else None
    return dict(found or {})


def _logged_in(person: Any) -> Any:
    return person if person is not None and getattr(person, "is_authenticated", False) else None


def _owner_of(thing: Model | None) -> int | None:
    """Return the owner of a thing, found over the row that it belongs to where it has none of its own."""
    for name in ("owner_id", "person_id", "user_id"):
        if (found := getattr(thing, name, None)) is not None:
            return int(found)
    if thing is not None and thing._meta.model_name == "user":
        return int(thing.pk)
    parents = (getattr(thing, name, None) for name in ("account", "reminder", "run", "job", "webhook"))
    parent = next((found for found in parents if found is not None), None)
    return _owner_of(parent) if isinstance(parent, Model) else None


def _is_secret(name: str) -> bool:
    return any(word in name.lower() for word in SECRETS)


def _cut(value: Any) -> Any:
    if isinstance(value, str) and len(value) > LONGEST:
        return value[:LONGEST] + "…"
    return str(value) if isinstance(value, Model) else value
