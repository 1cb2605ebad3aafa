"""Connecting an account to its service: pairing, looking, logging out.

What the service says becomes the account's status by `sessions.py`, and every move is one of `lifecycle`.
"""

from contextlib import suppress
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import F, Q
from django.utils import timezone

from accounts.models import Account, User
from accounts.models.account import new_webhook
from accounts.roles import require_touch
from delivery import asking, lifecycle, sync
from delivery.inbound import hooks
from delivery.inbound.sessions import REASONS, follows
from delivery.states import AccountStatus
from delivery.transports import kinds
from delivery.transports.base import AccountState, Pairing

TRY_AGAIN = timedelta(minutes=10)
MOST_AT_ONCE = 20


LOOKED = {
    AccountState.WORKING: "Its service says that it is connected.",
    AccountState.PAIRING: "Its service waits for its code to be scanned.",
    AccountState.STOPPED: "Its service says that it is not connected.",
    AccountState.BLOCKED: "Its service says that it is blocked, or refuses its credentials.",
    AccountState.UNREACHABLE: "Its service does not answer. Check its address, and that it runs.",
}


def connect(account: Account, *, by: User | None) -> Account:
    """Start the session and say where to report; raises NoAnswerError. With `by`, pairing begins if it must."""
    if by is not None:
        require_touch(account, by)
    Account.objects.filter(pk=account.pk).update(reports_tried_at=timezone.now())
    with asking.line_to(account) as line:
        kept = line.ask(lambda transport: transport.log_in())
        if kept is not None:
            account.credentials = dict(kept)
            account.save(update_fields=["credentials"])
        webhook = hooks.webhook_of(account) if line.transport.capabilities.webhooks else None
        state = line.ask(lambda transport: transport.connect(webhook))
    if webhook is not None:
        Account.objects.filter(pk=account.pk).update(reports_to=settings.PUBLIC_URL)
    return take_state(account, state, by=by)


def look(account: Account) -> tuple[Account, AccountState]:
    """Ask the service how the account is, and take that over; raises NoAnswerError."""
    state = asking.ask(account, lambda transport: transport.status())
    return take_state(account, state), state


def log_out(account: Account, *, by: User) -> Account:
    """Make the service forget the pairing; its runs pause. Raises NoAnswerError."""
    require_touch(account, by)
    asking.ask(account, lambda transport: transport.disconnect())
    Account.objects.filter(pk=account.pk).update(session_at=timezone.now())
    return lifecycle.stop_account(account, status=AccountStatus.UNPAIRED, reason=f"logged out by {by}", by=by)


def renew_webhook(account: Account, *, by: User) -> Account:
    """Another address and secret: reports to the old ones are refused from now on. Raises NoAnswerError."""
    require_touch(account, by)
    account.webhook, account.reports_to = new_webhook(), ""
    account.save(update_fields=["webhook", "reports_to"])
    return connect(account, by=None)


def pairing(account: Account, *, by: User) -> Pairing:
    """The code to scan now; raises NoAnswerError."""
    require_touch(account, by)
    return asking.ask(account, lambda transport: transport.pairing())


def pairing_code(account: Account, phone: str, *, by: User) -> str:
    """The code to type on the phone with that number; raises NoAnswerError."""
    require_touch(account, by)
    return asking.ask(account, lambda transport: transport.pairing_code(phone))


def hear(account: Account, state: AccountState, *, at: datetime, reason: str = "") -> Account:
    """Take over what a webhook says, unless something later is known already."""
    newest = Account.objects.filter(Q(session_at=None) | Q(session_at__lt=at), pk=account.pk)
    if not newest.update(session_at=at):
        return account
    return take_state(account, state, reason=reason)


def register_webhooks() -> None:
    """Tell services where to report, if they do not know or were told another address. A few at a time."""
    reporting = [kind for kind, transport in kinds().items() if transport.default_capabilities.webhooks]
    now = timezone.now()
    waiting = Account.objects.active().filter(
        Q(reports_tried_at=None) | Q(reports_tried_at__lt=now - TRY_AGAIN),
        transport__in=reporting,
        archived_at=None,
    )
    unaware = waiting.exclude(reports_to=settings.PUBLIC_URL) if settings.PUBLIC_URL else waiting.none()
    for account in unaware.order_by(F("reports_tried_at").asc(nulls_first=True))[:MOST_AT_ONCE]:
        with suppress(asking.NoAnswerError):  # the engine notices too, and says so where people look
            connect(account, by=None)


def take_state(account: Account, state: AccountState, *, reason: str = "", by: User | None = None) -> Account:
    """Move the account to what its service says it is."""
    account.refresh_from_db(fields=["status"])
    old = AccountStatus(account.status)
    new = follows(old, state, asked=by is not None)
    if new == old:
        return account
    if new is AccountStatus.ACTIVE:
        account = lifecycle.start_account(account, by=by)
        _read_groups_once(account)
        return account
    why = "" if new is AccountStatus.PAIRING else reason or REASONS.get(state, "")
    return lifecycle.stop_account(account, status=new, reason=why, by=by)


def _read_groups_once(account: Account) -> None:
    """A newly connected account brings its groups along; after that, a person says when to read them again."""
    kind = kinds()[account.transport]
    if kind.default_capabilities.groups and not account.syncs.exists():
        sync.start(account, by=None)
