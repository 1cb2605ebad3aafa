"""The rules of approval: when a second person is needed, and for how many recipients an approval holds. Pure."""

from collections.abc import Sequence


def strictest(*numbers: int | None) -> int | None:
    """Return the smallest of the numbers that are set; None where there is none. Zero means that it is not set."""
    return min((number for number in numbers if number), default=None)


def why_needed(recipients: int, *, above: int | None, marked: Sequence[str] = ()) -> str:
    """Return why a second person has to approve, in a sentence; empty where nobody has to."""
    if marked:
        return f"Everything from {marked[0]} needs approval."
    if above is not None and recipients > above:
        return f"What goes to more than {above:,} recipients needs approval: these are {recipients:,}."
    return ""


def covers(recipients: int) -> int:
    """Return the most recipients for whom an approval holds: a tenth more than were shown."""
    return recipients + recipients // 10


def looser(before: int | None, after: int | None) -> bool:
    """Decide whether a new number asks less often than the one before."""
    return before is not None and (after is None or after > before)


def why_not(person: int, *, asked_by: int | None, edited_by: int | None) -> str:
    """Return why a person with the role may not decide; empty where they may."""
    if person == asked_by:
        return "You asked for this yourself. Somebody else has to decide."
    if person == edited_by:
        return "You were the last to change this. Somebody else has to decide, or ask for approval yourself."
    return ""
