"""The approval that a hand-over needs: above the owner's number of messages, or to an account that is marked."""

import hashlib
import json
from collections.abc import Sequence

from django.db import transaction

from accounts.approvals import needs, rules
from accounts.approvals.requests import LASTS, Wanted, ask
from accounts.models import Account, Approval, User
from delivery.hand_over.split import Split, Wish
from delivery.lifecycle.steps import WrongStateError, locked
from delivery.models import Run


class NeedsApprovalError(Exception):
    """Raised where a second person has to approve first; nothing was moved."""

    def __init__(self, why: str, messages: int) -> None:
        self.why, self.messages = why, messages
        super().__init__(why)


def require(run: Run, wish: Wish, split: Split, accounts: Sequence[Account], *, most: int | None) -> None:
    """Raise where a second person has to approve first; `most` is how many messages somebody approved to move."""
    if most is not None:
        if split.moved > most:
            raise WrongStateError("More messages would move than were approved. Refuse it, and ask again.")
        return
    to = set(wish.to)
    marked = [account.name for account in accounts if account.needs_approval and account.pk in to]
    above = needs.number_of(run.owner_id)
    if why := rules.why_needed(split.moved, above=above, marked=marked):
        raise NeedsApprovalError(why, split.moved)


@transaction.atomic
def ask_to_hand_over(run: Run, wish: Wish, need: NeedsApprovalError, *, by: User | None) -> Approval:
    """Ask a second person; the approval hands over."""
    run = locked(run)
    said = {"to": sorted(wish.to), "known": wish.known, "of": wish.of}
    names = Account.objects.filter(pk__in=wish.to).order_by("name").values_list("name", flat=True)
    wanted = Wanted(
        owner_id=run.owner_id,
        kind=Approval.Kind.HAND_OVER,
        title=f"{run.name} to {' and '.join(names)}",
        why=need.why,
        content=hashlib.sha256(json.dumps([run.pk, said]).encode()).hexdigest()[:32],
        recipients=need.messages,
        said=said,
        run_id=run.pk,
        lasts=LASTS,
    )
    return ask(wanted, by=by)
