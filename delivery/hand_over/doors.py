"""The calls of all doors: pages, admin, command and API hand over with the same rights, and say the same."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from django.core.exceptions import PermissionDenied

from accounts.models import Account, User
from delivery.hand_over import words
from delivery.hand_over.move import HandedOver, hand_over
from delivery.hand_over.split import Wish
from delivery.models import Run
from delivery.states import IllegalMoveError


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The result of a hand-over: a sentence for each run that changed, and a refusal for each other."""

    done: Sequence[HandedOver] = ()
    told: Sequence[str] = field(default_factory=list)
    refused: Sequence[str] = field(default_factory=list)

    @property
    def moved(self) -> int:
        return sum(each.split.moved for each in self.done)


def hand_over_all(runs: Sequence[Run], wish: Wish, *, by: User | None) -> Report:
    """Hand over each run in a transaction of its own, so that one refusal does not stop the others."""
    names = {account.pk: account for account in Account.objects.filter(pk__in=wish.to).defer("credentials")}
    done, told, refused = [], [], []
    for run in runs:
        try:
            found = hand_over(run, wish, by=by)
        except (IllegalMoveError, PermissionDenied) as error:
            refused.append(str(error))
        else:
            done.append(found)
            told.append(words.done(run.name, found.split, names))
    return Report(done=done, told=told, refused=refused)
