"""Chooses the account of an item: the one that was asked for, or one of its queue's."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from django.db.models import Count

from accounts.models import Account, Contact, Recipient
from delivery.models import RunTarget
from delivery.states import TargetStatus
from queues.entries import Entry, EntryError
from queues.models import Queue

WAITING = (TargetStatus.SENDING, TargetStatus.PENDING)


def accounts_of(queue: Queue) -> list[Account]:
    """Return the queue's accounts in their order, without archived ones."""
    rows = queue.queue_accounts.filter(account__archived_at=None).select_related("account")
    return [share.account for share in rows.defer("account__credentials").order_by("position", "id")]


@dataclass(slots=True, kw_only=True)
class Senders:
    """The accounts of a queue, for choosing one for each item.

    A recipient stays with the account that last talked with them, if it can send, else with the one that an earlier
    item waits at. New ones go to the account with the fewest pending items.
    """

    accounts: Sequence[Account]
    known: Mapping[int, int] = field(default_factory=dict)
    load: dict[int, int] = field(default_factory=dict)

    def named(self, written: str) -> Account | None:
        """Return the account with this number, name or address."""
        wanted = written.strip().lower()
        for account in self.accounts:
            if wanted in {str(account.pk), account.name.lower(), account.own_address.lower()}:
                return account
        return None

    def choose(self, recipient: Recipient) -> Account:
        """Return the account for a recipient, and count one more item for it."""
        by_id = {account.pk: account for account in self.accounts}
        found = by_id.get(recipient.account_id or 0) or by_id.get(self.known.get(recipient.pk, 0))
        if found is None:
            found = min(self._able(), key=lambda account: self.load.get(account.pk, 0))
        self.load[found.pk] = self.load.get(found.pk, 0) + 1
        return found

    def _able(self) -> Sequence[Account]:
        """Return the accounts that can send now; all of them where none can."""
        able = [account for account in self.accounts if account.status == Account.Status.ACTIVE]
        return able or self.accounts


def check_sender(entry: Entry, known: Senders) -> None:
    """Raise EntryError where an entry names an account that its queue does not send from."""
    if entry.sender and known.named(entry.sender) is None:
        raise EntryError(f"“{entry.sender[:60]}” is not an account of this queue. Add it to the queue first.")


def senders(queue: Queue, recipients: Collection[int]) -> Senders:
    """Return the senders of a queue, with what is known of these recipients."""
    accounts = accounts_of(queue)
    ids = [account.pk for account in accounts]
    able = [account.pk for account in accounts if account.status == Account.Status.ACTIVE]
    talks = Contact.objects.filter(recipient__in=recipients, account__in=able, talked_at__isnull=False)
    last = talks.order_by("recipient_id", "-talked_at").distinct("recipient_id")
    rows = RunTarget.objects.filter(recipient__in=recipients, account__in=ids, status__in=WAITING)
    waiting = rows.order_by("recipient_id", "-run_id", "-pk").distinct("recipient_id")
    pending = RunTarget.objects.filter(account__in=ids, status=TargetStatus.PENDING)
    load = pending.values_list("account").annotate(number=Count("pk")).order_by()
    known = dict(waiting.values_list("recipient_id", "account_id"))
    known |= dict(last.values_list("recipient_id", "account_id"))
    return Senders(accounts=accounts, known=known, load=dict(load))
