"""Sends a reminder by hand. Every page, admin action, command and API call comes here.

1. Refuse a draft, and a reminder that reaches nobody.
2. Return the last look where a person has to confirm: above `ASKS_ABOVE` recipients, where people received it within
   a day, and where some lack a value. `said` holds the answers: `confirmed` with the `number` that the person saw,
   `without` those who lack a value, and `again` for those who received it: `rest` leaves them out.
3. Ask for approval where a second person is needed; their approval comes back here and fires.
4. Fire. A large run waits for `UNDO_SECONDS` before anything leaves; until then `lifecycle.undo` takes it back.
"""

from collections.abc import Mapping
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from accounts.models import Approval, Role, User
from accounts.roles import require_touch
from delivery.models import Run
from reminders import headcount
from reminders.approvals.asking import ask_to_send
from reminders.by_hand.last_look import REST, LastLook, hold, last_look
from reminders.fire import fire, refuse_drafts
from reminders.models import Reminder


def send(
    reminder: Reminder,
    *,
    by: User | None,
    said: Mapping[str, str],
    key: UUID | None = None,
    approved: bool = False,
) -> Run | LastLook | Approval:
    """Send it and return the run; or return the question that a person must answer first, or whose answer it awaits."""
    if by is not None:
        require_touch(reminder, by, Role.SEND)
    refuse_drafts(reminder)
    if known := Run.objects.filter(reminder=reminder, key=key).first() if key else None:
        return known  # the button was pressed twice
    if said:
        headcount.forget(
            reminder
        )  # an answer is held against the people of this moment, not against a kept count
    newest = Run.objects.filter(reminder=reminder).order_by("-pk").values_list("pk", flat=True).first()
    look = last_look(reminder, now=timezone.now())
    if look.asks and not look.answered(said):
        return look
    without = look.repeat.runs if look.repeat and said.get("again") == REST else ()
    with transaction.atomic():  # nobody adds recipients between the question and the run
        Reminder.objects.select_for_update(no_key=True).get(pk=reminder.pk)
        if not approved and (waits := ask_to_send(reminder, by=by, said=said)):
            return waits
        return fire(reminder, by=by, key=key, undo=hold(), without=without, after=newest or 0)
