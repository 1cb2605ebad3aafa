"""The messages of a run by the cause of their error, so that a person decides once for all of one cause."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import F, Func, QuerySet, TextField, Value

from accounts.models import Account
from delivery.models import Run, RunTarget
from delivery.states import TargetStatus

SAMPLE = 10_000  # messages that are looked through for their causes
SHOWN = 10
# Numbers of messages and people make an error unique: they are no part of its cause.
CAUSE = Func(
    F("error"),
    Value("[0-9]{4,}"),
    Value("…"),
    Value("g"),
    function="regexp_replace",
    output_field=TextField(),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """One error from one account."""

    account_id: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The messages of one cause: their number in the part of the run that was looked through."""

    cause: Cause
    account: Account
    count: int


def of_cause(targets: QuerySet[RunTarget], cause: Cause | None) -> QuerySet[RunTarget]:
    """Return the targets of one cause; all of them for None."""
    if cause is None:
        return targets
    return targets.filter(account=cause.account_id).alias(cause=CAUSE).filter(cause=cause.text)


def groups_of(run: Run, status: TargetStatus) -> Sequence[Group]:
    """Return the most frequent causes of the run's targets with this status."""
    targets = RunTarget.objects.filter(run=run, status=status).order_by("pk")
    counts = Counter(targets.annotate(cause=CAUSE).values_list("account_id", "cause")[:SAMPLE])
    found = counts.most_common(SHOWN)
    accounts = Account.objects.defer("credentials", "webhook").in_bulk([account for (account, _), _ in found])
    return [
        Group(cause=Cause(account_id=account, text=text), account=accounts[account], count=count)
        for (account, text), count in found
        if account in accounts
    ]
