"""The states of a recipient, as conditions for the database; the strongest reason comes first."""

from django.db.models import Case, CharField, Q, QuerySet, Value, When
from django.utils import timezone

from accounts.models import Recipient

REACHABLE, ARCHIVED = "reachable", "archived"


def _states() -> dict[str, Q]:
    return {
        "opted_out": Q(opted_out_at__isnull=False),
        "blocked": Q(blocked_at__isnull=False),
        "undeliverable": Q(undeliverable_at__isnull=False),
        "cooling_down": Q(cooldown_until__gt=timezone.now()),
        "not_interested": Q(not_interested_at__isnull=False),
        "converted": Q(converted_at__isnull=False),
    }


STATES = (*_states(), REACHABLE, ARCHIVED)


def state_now() -> Case:
    """Return the expression for the one state that a list shows."""
    reasons = [When(condition, then=Value(state)) for state, condition in _states().items()]
    return Case(*reasons, default=Value(REACHABLE), output_field=CharField())


def in_state(rows: QuerySet[Recipient], state: str) -> QuerySet[Recipient]:
    """Return the rows in this state; an unknown state returns all. Archived rows are returned only for "archived".

    Uses conditions instead of a comparison with `state_now`, so that the index `recipient_set_apart` is used.
    """
    rows = rows.filter(archived_at__isnull=state != ARCHIVED)
    if state in {"", ARCHIVED} or state not in STATES:
        return rows
    for stronger, condition in _states().items():
        if stronger == state:
            return rows.filter(condition)
        rows = rows.exclude(condition)
    return rows
