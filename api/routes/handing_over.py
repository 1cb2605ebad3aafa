"""Answers the routes that hand over a run, or all work of an account."""

from collections.abc import Sequence

from django.utils import timezone

from accounts.models import User
from api.problems import refusal
from api.schemas.runs import CourseShown, HandOver, HandOverShown, PreviewShown
from delivery.hand_over.doors import hand_over_all, look
from delivery.hand_over.preview import Course, Preview
from delivery.hand_over.split import Wish
from delivery.models import Run


def answer(runs: Sequence[Run], body: HandOver, *, of: int | None, by: User) -> HandOverShown:
    """Show what a hand-over would do; do it where it is confirmed. What is refused as a whole is a problem."""
    wish = Wish(to=body.to, known=body.known, of=of)
    if not body.confirmed:
        found = look(runs, wish, now=timezone.now(), by=by)
        if found.refused and not found.previews:
            raise refusal(409, "wrong-state", " ".join(found.refused))
        previews = [_shown(each) for each in found.previews]
        return HandOverShown(done=False, moved=0, told=[], refused=list(found.refused), previews=previews)
    report = hand_over_all(runs, wish, by=by)
    if report.refused and not report.done and not report.waiting:
        raise refusal(409, "wrong-state", " ".join(report.refused))
    return HandOverShown(
        done=True,
        moved=report.moved,
        told=list(report.told),
        refused=list(report.refused),
        waiting=list(report.waiting),
        previews=[],
    )


def _shown(found: Preview) -> PreviewShown:
    return PreviewShown(
        run=found.run.pk,
        moves={str(pk): number for pk, number in found.split.moves.items()},
        stays={why.value: number for why, number in found.split.stayed.items()},
        told=f"{found.told} {found.stays}".strip(),
        as_it_is=_course(found.stay),
        handed_over=_course(found.move) if found.move is not None else None,
    )


def _course(course: Course) -> CourseShown:
    return CourseShown(fits=course.fits, sentence=course.sentence)
