"""A test of a reminder: its message to the operator's own address, as a real recipient would read it."""

from accounts.addresses import BadAddressError, canonical
from accounts.models import Account, User
from accounts.models.account import Channel
from accounts.roles import require_touch
from delivery import test_send
from delivery.render import MissingVariableError, render
from delivery.tickets import Ticket
from reminders.audience import some_of
from reminders.drafts import NotPossibleError
from reminders.fire import freeze
from reminders.models import Reminder
from reminders.preview import SAMPLE, values_of


def try_out(reminder: Reminder, *, account_id: str, address: str, by: User) -> Ticket:
    """Send it to `address` from one of the reminder's accounts, outside every count and inside the limits."""
    require_touch(reminder, by)
    firing, account = freeze(reminder), _account(reminder, account_id)
    if not firing.parts:
        raise NotPossibleError("There is no message to try yet. Write one first.")
    try:
        to = canonical(account.channel, address).text
    except BadAddressError as error:
        raise NotPossibleError(str(error)) from error
    somebody = some_of(reminder, 1)
    values = values_of(somebody[0]) if somebody else dict(SAMPLE[Channel(reminder.channel)])
    try:
        for text in (firing.subject, *(part.text for part in firing.parts)):
            render(text, values)
    except MissingVariableError as error:
        raise NotPossibleError(str(error)) from error
    if not account.own_address:
        Account.objects.filter(pk=account.pk).update(own_address=to)
    ticket = Ticket(
        account_id=account.pk,
        reminder_id=reminder.pk,
        address=to,
        action=firing.action,
        subject=firing.subject,
        parts=[part.as_json() for part in firing.parts],
        values=values,
    )
    return test_send.ask(ticket, by=by)


def _account(reminder: Reminder, account_id: str) -> Account:
    """The one that was chosen, else the first."""
    shares = reminder.reminder_accounts.select_related("account").order_by("position", "id")
    accounts = {str(share.account_id): share.account for share in shares}
    if not accounts:
        raise NotPossibleError("There is no account to send from. Choose one first.")
    return accounts.get(account_id) or next(iter(accounts.values()))
