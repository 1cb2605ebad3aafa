"""Holds due moments that nobody approved (SPEC K3). The tick asks once for a batch of reminders.

1. Where neither the owner nor an account of any of them asks for a second person, that is all: one query. Where owners
   have a number, one more finds the reminders that may be above it.
2. Of these, compare what would leave with what was approved. What differs is not sent: the moment is recorded as
   skipped with the reason, which tells the owner.
3. Tell who asked and who could have approved. A request for a moment that was the only one ends; for the next moments
   of the others there is one that waits.
"""

from collections.abc import Iterable, Mapping, Sequence

from accounts.approvals import needs
from accounts.approvals.requests import address_of, deciders_of, expire, tell_outcome
from accounts.models import Approval, User
from activity.components.times import dated
from delivery import audience
from delivery.window import zone_of
from reminders.approvals.asking import Kind, ask_to_schedule, need_of, waiting_for
from reminders.approvals.content import content_of
from reminders.models import Reminder


def held(reminders: Sequence[Reminder]) -> dict[int, str]:
    """Return why reminders that are due may not leave, by their id. Their accounts have been read."""
    numbers = needs.numbers_of({reminder.owner_id for reminder in reminders}) if reminders else {}
    large = _may_be_above(reminders, numbers)
    asked = [each for each in reminders if each.pk in large or _has_marked_account(each)]
    found = ((each.pk, _why_held(each, numbers.get(each.owner_id))) for each in asked)
    return {pk: why for pk, why in found if why}


def _may_be_above(reminders: Sequence[Reminder], numbers: Mapping[int, int]) -> set[int]:
    """Return the reminders that may reach more than their owner's number: sized together, in one query."""
    above = {each.pk: numbers[each.owner_id] for each in reminders if each.owner_id in numbers}
    if not above:
        return set()
    sizes = audience.sizes(list(above), most=max(above.values()) + 1)
    return {pk for pk, number in above.items() if sizes[pk] > number}


def passed(reminders: Iterable[Reminder], whys: Mapping[int, str], moments: Mapping[int, object]) -> None:
    """Tell that moments passed without an approval, and ask for the next ones."""
    for reminder in reminders:
        if reminder.pk not in whys or moments.get(reminder.pk) is None:
            continue
        waits = waiting_for(reminder, Kind.REMINDER)
        if (
            reminder.next_fire_at is not None
        ):  # one that waits may be for other words, or for fewer recipients
            waits = ask_to_schedule(reminder, by=_asker(reminder, waits), keep=True)
        if waits is not None:
            _tell(reminder, waits, f"{moments[reminder.pk]}")


def _why_held(reminder: Reminder, above: int | None) -> str:
    need = need_of(reminder, above)
    if not need:
        return ""
    content = content_of(reminder)
    if needs.is_approved(reminder.pk, [Kind.REMINDER], content=content, recipients=need.recipients):
        return ""
    waits = waiting_for(reminder, Kind.REMINDER)
    told = "Nobody approved it in time." if waits else "It was not approved as it is now."
    return f"Not sent: {need.why} {told}"


def _tell(reminder: Reminder, waits: Approval, moment: str) -> None:
    """Tell who asked and who could have approved; the skipped run tells the owner."""
    if reminder.next_fire_at is None:
        words = f"Its time passed, and nothing was sent. Schedule {reminder} again for another time."
        expire(waits, body=words, but=reminder.owner_id)
        return
    at = dated(reminder.next_fire_at, zone_of(reminder.zone))
    people = {waits.asked_by_id, *(each.pk for each in deciders_of(waits))} - {reminder.owner_id, None}
    for pk in people:
        tell_outcome(
            waits,
            [pk],
            title=f"Not sent: {reminder}",
            body=f"Nobody had approved it. Approve it before {at}, when it is due next.",
            url=address_of(waits),
            key=f"approval:{waits.pk}:passed:{moment}",
        )


def _asker(reminder: Reminder, waits: Approval | None) -> User | None:
    """Return who asks for the next moments: who asked before, unless the reminder was edited since."""
    if waits is not None and waits.content == content_of(reminder):
        return waits.asked_by
    return reminder.edited_by


def _has_marked_account(reminder: Reminder) -> bool:
    return any(share.account.needs_approval for share in reminder.reminder_accounts.all())
