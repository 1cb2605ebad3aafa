"""The calls of all doors: pages, admin, command and API hand over with the same rights, and say the same."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from django.core.exceptions import PermissionDenied

from accounts.models import Account, User
from delivery.hand_over import words
from delivery.hand_over.approval import NeedsApprovalError, ask_to_hand_over
from delivery.hand_over.move import HandedOver, hand_over
from delivery.hand_over.preview import Preview, preview
from delivery.hand_over.split import Wish
from delivery.models import Run
from delivery.states import IllegalMoveError


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The result of a hand-over: a sentence for each run that changed, and a refusal for each other."""

    done: Sequence[HandedOver] = ()
    told: Sequence[str] = field(default_factory=list)
    refused: Sequence[str] = field(default_factory=list)
    waiting: Sequence[str] = field(
        default_factory=list
    )  # a sentence for each that a second person has to approve

    @property
    def moved(self) -> int:
        return sum(each.split.moved for each in self.done)


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """The prospect of a hand-over: a preview of each run, and a refusal for each other."""

    previews: Sequence[Preview]
    refused: Sequence[str]


def look(runs: Sequence[Run], wish: Wish, *, now: datetime, by: User | None) -> Look:
    """Return what a hand-over of each run would do; nothing is changed."""
    found, refused = [], []
    for run in runs:
        try:
            found.append(preview(run, wish, now=now, by=by))
        except (IllegalMoveError, PermissionDenied) as error:
            refused.append(str(error))
    return Look(previews=found, refused=refused)


def hand_over_all(runs: Sequence[Run], wish: Wish, *, by: User | None) -> Report:
    """Hand over each run in a transaction of its own, so that one refusal does not stop the others."""
    names = {account.pk: account for account in Account.objects.filter(pk__in=wish.to).defer("credentials")}
    done, told, refused, waiting = [], [], [], []
    for run in runs:
        try:
            found = hand_over(run, wish, by=by)
        except NeedsApprovalError as need:
            ask_to_hand_over(run, wish, need, by=by)
            waiting.append(f"“{run.name}” waits for approval. {need.why} Nothing has moved yet.")
        except (IllegalMoveError, PermissionDenied) as error:
            refused.append(str(error))
        else:
            done.append(found)
            told.append(words.done(run.name, found.split, names))
    return Report(done=done, told=told, refused=refused, waiting=waiting)
