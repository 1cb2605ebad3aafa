"""The messages of a run as its page lists them: one status, or those that a search finds, and their causes."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Prefetch, QuerySet
from django.http import QueryDict

from accounts.models import Account, Recipient
from accounts.paging import Page, page_of
from accounts.recipients.search import matching
from delivery.lifecycle.causes import Group, groups_of
from delivery.models import Run, RunTarget
from delivery.run_actions import BATCHES, Action
from delivery.states import TargetStatus

RETURNED = "returned"  # sent, and reported as failed later
# What needs a decision comes first.
ORDER = (
    TargetStatus.UNCONFIRMED,
    TargetStatus.FAILED,
    RETURNED,
    TargetStatus.SENDING,
    TargetStatus.PENDING,
    TargetStatus.SENT,
    TargetStatus.SKIPPED,
)
WITH_CAUSES = (TargetStatus.UNCONFIRMED, TargetStatus.FAILED)
MOST_FOUND = 2_000  # recipients of one search
LONGEST = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Tab:
    """One status with its number. The numbers are columns of the run, so no query counts them."""

    status: str
    count: int
    current: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetList:
    """The part of the page below the progress of a run."""

    chosen: str  # the status of the tab
    search: str
    too_many: bool  # the search finds more people than are looked for in the run
    page: Page[RunTarget]
    tabs: Sequence[Tab]
    groups: Sequence[Group]
    actions: Sequence[Action[Run]]  # on many messages of this status

    @property
    def mixed(self) -> bool:
        """Return whether the rows have several statuses."""
        return bool(self.search)

    @property
    def decidable(self) -> bool:
        """Return whether rows may wait for a decision."""
        return self.mixed or self.chosen == TargetStatus.UNCONFIRMED


def target_list(run: Run, address: QueryDict) -> TargetList:
    search = address.get("q", "").replace("\0", "").strip()[:LONGEST]
    chosen = chosen_status(run, address.get("status", ""))
    rows, too_many = _found(run, search) if search else (_in(run, chosen), False)
    has_causes = chosen in WITH_CAUSES and not search and run.details_removed_at is None
    return TargetList(
        chosen=chosen,
        search=search,
        too_many=too_many,
        page=page_of(rows, address),
        tabs=[
            Tab(status=status, count=getattr(run, status), current=status == chosen and not search)
            for status in ORDER
        ],
        groups=groups_of(run, TargetStatus(chosen)) if has_causes and getattr(run, chosen) else (),
        actions=_actions(run, chosen) if has_causes else (),
    )


def chosen_status(run: Run, asked: str) -> str:
    """Return the status that the address asks for, else the first status that has targets.

    A target that is being sent has another status a second later, so `sending` is shown only when asked for.
    """
    if asked in ORDER:
        return asked
    lasting = [status for status in ORDER if status is not TargetStatus.SENDING]
    return next((status for status in lasting if getattr(run, status)), TargetStatus.PENDING)


def _of(run: Run) -> QuerySet[RunTarget]:
    # Not joined: the planner would rather look through millions of targets than trust that each has a recipient.
    accounts = Prefetch("account", Account.objects.defer("credentials"))
    return RunTarget.objects.filter(run=run).prefetch_related("recipient", accounts)


def _in(run: Run, chosen: str) -> QuerySet[RunTarget]:
    """Return the targets of one tab."""
    if chosen == RETURNED:
        return _of(run).filter(returned_at__isnull=False, status=TargetStatus.SENT)
    return _of(run).filter(status=chosen)


def _found(run: Run, search: str) -> tuple[QuerySet[RunTarget], bool]:
    """Return the targets of the people that a search finds, whatever their status."""
    people = matching(Recipient.objects.filter(owner=run.owner_id).order_by(), search)
    ids = list(people.values_list("pk", flat=True)[: MOST_FOUND + 1])
    return _of(run).filter(recipient__in=ids[:MOST_FOUND]), len(ids) > MOST_FOUND


def _actions(run: Run, status: str) -> list[Action[Run]]:
    verbs = ("retry-all",) if status == TargetStatus.FAILED else ("confirm-all", "resend-all")
    return [BATCHES[verb] for verb in verbs if BATCHES[verb].suits(run)]
