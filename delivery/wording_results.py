"""Counts the results of a run for each of several wordings of a part.

The wording of a target follows from its key (`delivery/wordings.py`), so nothing is read but the run's own targets.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from django.db import connection

from delivery.models import Run
from delivery.parts import FrozenPart, thaw
from delivery.wordings import LETTERS

# The number in front is that of `wordings._number`, of the name that `target_key` makes.
RESULTS = """
SELECT ('x' || left(encode(sha256(convert_to(%(key)s || '-' || t.id, 'UTF8')), 'hex'), 8))::bit(32)::bigint
           %% %(wordings)s AS variant,
       count(*),
       count(t.returned_at),
       count(*) FILTER (WHERE t.recipient_id IN (
           SELECT i.recipient_id FROM activity_inbound i
           WHERE i.run_id = %(run)s AND i.kind = 'message' AND i.recipient_id IS NOT NULL)),
       count(*) FILTER (WHERE p.opted_out_at >= t.settled_at)
FROM delivery_runtarget t JOIN accounts_recipient p ON p.id = t.recipient_id
WHERE t.run_id = %(run)s AND t.status = 'sent'
GROUP BY variant
"""
COUNTED = ("sent", "returned", "replied", "opted_out")  # in the order of RESULTS


@dataclass(frozen=True, slots=True, kw_only=True)
class WordingResult:
    """The result of one wording: the targets that got it, and what their recipients did since."""

    letter: str
    text: str
    sent: int = 0
    returned: int = 0  # of those sent
    replied: int = 0
    opted_out: int = 0

    @property
    def replied_share(self) -> str:
        """Return the share of those who got it who replied, in per cent."""
        return f"{self.replied / self.sent:.1%}" if self.replied else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartResults:
    """The results of one part that has several wordings."""

    number: int
    wordings: Sequence[WordingResult]


def has_wordings(run: Run) -> bool:
    """Return whether a part of the run has several wordings."""
    return any(len(part.get("wordings", ())) > 1 for part in run.parts)


def results_of(run: Run) -> list[PartResults]:
    """Return the results of each part with several wordings, as they are now."""
    parts = [(number, part) for number, part in enumerate(thaw(run.parts), 1) if len(part.wordings) > 1]
    counted = {count: _counts(run, count) for count in {len(part.wordings) for _, part in parts}}
    return [
        PartResults(number=number, wordings=_of_part(part, counted[len(part.wordings)]))
        for number, part in parts
    ]


def letters_of(run: Run, target_key: str) -> str:
    """Return the letters of the wordings that a target gets, one for each part that has several, as "A, C"."""
    variants = (part.variant(key=target_key) for part in thaw(run.parts))
    return ", ".join(LETTERS[variant] for variant in variants if variant is not None)


def _of_part(part: FrozenPart, counts: dict[int, tuple[int, ...]]) -> list[WordingResult]:
    return [
        WordingResult(
            letter=LETTERS[variant],
            text=text,
            **dict(zip(COUNTED, counts.get(variant, ()), strict=False)),
        )
        for variant, text in enumerate(part.wordings)
    ]


def _counts(run: Run, wordings: int) -> dict[int, tuple[int, ...]]:
    """Return, for each variant, the numbers of COUNTED."""
    with connection.cursor() as cursor:
        cursor.execute(RESULTS, {"key": run.key.hex, "wordings": wordings, "run": run.pk})
        return {variant: tuple(numbers) for variant, *numbers in cursor.fetchall()}
