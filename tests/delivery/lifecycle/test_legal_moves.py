"""Every move of a run, a target and an account, tried on the database itself."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import pytest
from django.db import IntegrityError, models, transaction
from django.utils import timezone

from accounts.models import Account
from delivery.models import Run
from delivery.states import ACCOUNT_MOVES, RUN_MOVES, TARGET_MOVES, RunStatus, TargetStatus, may_move
from tests.factories import AccountFactory, RunFactory, RunTargetFactory

pytestmark = pytest.mark.django_db

Moves = Mapping[Any, frozenset[Any]]


def pairs(moves: Moves) -> list[tuple[StrEnum, StrEnum]]:
    return [(old, new) for old in moves for new in moves if new is not old]


def moves_as_the_table_says(row: models.Model, moves: Moves, old: StrEnum, new: StrEnum, **also: Any) -> bool:
    """Check that the database allows or refuses this move as `moves` says."""
    try:
        with transaction.atomic():
            type(row)._default_manager.filter(pk=row.pk).update(status=new, **also)
    except IntegrityError as error:
        return "cannot become" in str(error) and not may_move(moves, old, new)
    return may_move(moves, old, new)


@pytest.mark.parametrize(("old", "new"), pairs(RUN_MOVES))
def test_a_run_moves_as_the_table_says(old: RunStatus, new: RunStatus) -> None:
    run = RunFactory.create(status=old, pause_reason="operator" if old is RunStatus.PAUSED else "")
    reason = "operator" if new is RunStatus.PAUSED else ""
    assert moves_as_the_table_says(run, RUN_MOVES, old, new, pause_reason=reason)
    assert Run.objects.get().status in {old, new}


@pytest.mark.parametrize(("old", "new"), pairs(TARGET_MOVES))
def test_a_target_moves_as_the_table_says(old: TargetStatus, new: TargetStatus) -> None:
    target = RunTargetFactory.create(status=old, fence=1, claimed_at=timezone.now())
    assert moves_as_the_table_says(target, TARGET_MOVES, old, new)


@pytest.mark.parametrize(("old", "new"), pairs(ACCOUNT_MOVES))
def test_an_account_moves_as_the_table_says(old: Account.Status, new: Account.Status) -> None:
    account = AccountFactory.create(status=old)
    assert moves_as_the_table_says(account, ACCOUNT_MOVES, old, new)


def test_staying_is_always_legal_and_an_unknown_word_is_never_known() -> None:
    run = RunFactory.create()
    Run.objects.filter(pk=run.pk).update(status=run.status)
    with pytest.raises(IntegrityError, match="run_status_known"), transaction.atomic():
        Run.objects.filter(pk=run.pk).update(status="stuck")
