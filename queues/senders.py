"""Chooses the account of an item: the one that was asked for, or one of its queue's."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from django.utils import timezone

from accounts.models import Account, Contact, Recipient
from delivery.models import Run, RunAccount, RunTarget
from delivery.planning import rooms
from delivery.states import TargetStatus
from queues.entries import Entry, EntryError
from queues.models import Queue

WAITING = (TargetStatus.SENDING, TargetStatus.PENDING)


def accounts_of(queue: Queue) -> list[Account]:
    """Return the queue's accounts in their order, without archived ones."""
    rows = queue.queue_accounts.filter(account__archived_at=None).select_related("account")
    return [share.account for share in rows.defer("account__credentials").order_by("position", "id")]


@dataclass(slots=True, kw_only=True)
class Left:
    """The room that one account has left, of today and of a whole day, and the items that wait there already."""

    today: int = 0
    a_day: int = 1
    waiting: int = 0

    def order(self) -> tuple[int, float]:
        """Return a key that is smallest for the account that takes the next new recipient.

        That is the one with most room left today. Where none has any, the one that will be through first.
        """
        return -max(0, self.today), (self.waiting + 1) / max(1, self.a_day)


@dataclass(slots=True, kw_only=True)
class Senders:
    """The accounts of a queue, for choosing one for each item.

    A recipient stays with the account that last talked with them, if it can send, else with the one that an earlier
    item waits at. New ones go to the account with the most room left today (SPEC S7).
    """

    accounts: Sequence[Account]
    known: Mapping[int, int] = field(default_factory=dict)
    left: dict[int, Left] = field(default_factory=dict)

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
            found = min(self._able(), key=lambda account: self.left_of(account).order())
        left = self.left_of(found)
        left.today, left.waiting = left.today - 1, left.waiting + 1
        return found

    def left_of(self, account: Account) -> Left:
        return self.left.setdefault(account.pk, Left())

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
    known = dict(waiting.values_list("recipient_id", "account_id"))
    known |= dict(last.values_list("recipient_id", "account_id"))
    left = _left(ids, queue.action) if recipients and len(ids) > 1 else {}
    return Senders(accounts=accounts, known=known, left=left)


def _left(account_ids: Sequence[int], action: str) -> dict[int, Left]:
    """Read what accounts have left, for recipients who are new to them."""
    found = rooms.read([(account_ids, action)], now=timezone.now()).for_people(1)
    left = {pk: Left(today=room.today, a_day=room.a_day) for (pk, _), room in found.items()}
    # The counters of runs, and not their targets, of which there may be a million.
    shares = RunAccount.objects.filter(account__in=account_ids, open=True, run__in=Run.objects.open())
    for account_id, pending in shares.values_list("account_id", "run__pending"):
        left.setdefault(account_id, Left()).waiting += pending
    return left
