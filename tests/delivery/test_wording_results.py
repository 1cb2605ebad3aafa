from collections import Counter
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from delivery.models import target_key
from delivery.parts import thaw
from delivery.wording_results import has_wordings, letters_of, results_of
from delivery.wordings import LETTERS
from tests.factories import AccountFactory, InboundFactory, RunFactory, RunTargetFactory

PARTS: list[dict[str, Any]] = [
    {"kind": "text", "text": "a", "wordings": ["a", "b"]},
    {"kind": "text", "text": "same for all"},
    {"kind": "text", "text": "x", "wordings": ["x", "y", "z"]},
]


@pytest.mark.django_db
def test_results_are_counted_for_the_wording_that_each_target_got() -> None:
    run = RunFactory.create(success=True, parts=PARTS, sent=40)
    account = AccountFactory.create(owner=run.owner)
    targets = RunTargetFactory.create_batch(40, run=run, account=account, sent=True)
    RunTargetFactory.create(run=run, account=account, failed=True)
    replied, left = targets[0], targets[1]
    back = targets[2]
    back.returned_at, back.return_kind = timezone.now(), "permanent"
    back.save()
    for _ in range(2):
        InboundFactory.create(account=account, run=run, recipient=replied.recipient)
    left.recipient.opted_out_at = timezone.now() + timedelta(seconds=1)
    left.recipient.save()

    first, third = results_of(run)
    assert (first.number, third.number) == (1, 3)
    parts = thaw(PARTS)
    for found, part in ((first, parts[0]), (third, parts[2])):
        drawn = Counter(part.variant(key=target_key(run.key, target.pk)) for target in targets)
        assert [wording.text for wording in found.wordings] == list(part.wordings)
        assert {LETTERS.index(wording.letter): wording.sent for wording in found.wordings} == dict(drawn)
        [heard] = [wording.letter for wording in found.wordings if wording.replied]
        assert heard == LETTERS[part.variant(key=target_key(run.key, replied.pk)) or 0]
        assert sum(wording.replied for wording in found.wordings) == 1
        [bounced] = [wording.letter for wording in found.wordings if wording.returned]
        assert bounced == LETTERS[part.variant(key=target_key(run.key, back.pk)) or 0]
        [out] = [wording.letter for wording in found.wordings if wording.opted_out]
        assert out == LETTERS[part.variant(key=target_key(run.key, left.pk)) or 0]


@pytest.mark.django_db
def test_the_letters_of_a_target_are_those_of_its_parts_with_several_wordings() -> None:
    run = RunFactory.create(parts=PARTS)
    letters = letters_of(run, target_key(run.key, 5)).split(", ")
    assert len(letters) == 2
    assert set(letters) <= set("ABC")


@pytest.mark.django_db
def test_a_run_with_one_wording_has_no_results_of_wordings() -> None:
    one = RunFactory.create(parts=[{"kind": "text", "text": "{a|b}", "wordings": ["{a|b}"]}])
    assert not has_wordings(one)
    assert results_of(one) == []
    assert letters_of(one, "k") == ""
