"""Connects an account to its service: pairing, checking, logging out.

The service's answer becomes the account's status by `follow.py`, and every change is a move of `lifecycle`.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import F, Q, Window
from django.db.models.functions import RowNumber
from django.utils import timezone

from accounts.models import Account, Role, User
from accounts.models.account import new_webhook
from accounts.roles import require_touch
from audit.record import record
from config.long_tasks import one_pass
from delivery import lifecycle
from delivery.file_addresses import memory
from delivery.inbound import refusals, webhooks
from delivery.outcomes import NotConnected, Unreachable
from delivery.sessions import ask, calls, groups, one_account, own_limits
from delivery.sessions.follow import REASONS, follows
from delivery.states import AccountStatus, TroubleKind
from delivery.transports import kinds
from delivery.transports.base import AccountState, Pairing, Transport, UnansweredError

TRY_AGAIN = timedelta(minutes=10)
MOST_AT_ONCE = 20
SHIFT_SECONDS = 40  # seconds of one pass, if services do not answer


LOOKED = {
    AccountState.WORKING: "The service reports that this account is connected.",
    AccountState.STARTING: "The service is starting the session. Check again in a minute.",
    AccountState.PAIRING: "The service is waiting for the code to be scanned.",
    AccountState.STOPPED: "The service reports that this account is not connected.",
    AccountState.BLOCKED: "The service has blocked this account, or rejects its credentials.",
    AccountState.UNREACHABLE: "The service does not answer. Check its address, and that it is running.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """The answer to a question about the state; `silent` says that there was none."""

    state: AccountState
    why: str
    silent: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """The state that a service reports for an account, and the reason, where that is known."""

    account: Account
    state: AccountState
    why: str = ""

    @property
    def sentence(self) -> str:
        return f"{LOOKED[self.state]} ({self.why.rstrip('.')}.)" if self.why else LOOKED[self.state]


def connect(account: Account, *, by: User | None) -> Account:
    """Start the session and tell the service where to report; raise NoAnswerError.

    With `by`, pairing begins if needed. Without a person nothing is made or started at the service: it is only told
    where to report.
    """
    if by is not None:
        require_touch(account, by, Role.MANAGE)
        record("account.connected", account, by=by)  # before the service is asked: it may begin and fail
    with _remembering(account), ask.line_to(account) as line:
        Account.objects.filter(pk=account.pk).update(reports_tried_at=timezone.now())
        kept = line.ask(lambda transport: transport.log_in())
        if kept is not None:
            account.save(update_fields=one_account.enter(account, kept))
        webhook = webhooks.webhook_of(account) if line.transport.capabilities.webhooks else None
        state = line.ask(lambda transport: transport.connect(webhook, start=by is not None))
    if webhook is not None:
        Account.objects.filter(pk=account.pk).update(reports_to=settings.PUBLIC_URL)
        refusals.forget(account)
    return take_state(account, state, by=by)


def look(account: Account) -> Looked:
    """Ask the service for the account's state, and apply the answer; raise NoAnswerError.

    Whether its gateway can fetch files is found out anew with the next one.
    """
    memory.forget(account.pk)
    return apply(account, ask.ask(account, state_of))


async def state_of(transport: Transport) -> Answered:
    """Return what a service says about the state of its account."""
    state = await transport.status()
    return Answered(state=state, why=transport.why, silent=transport.silent)


def apply(account: Account, answered: Answered) -> Looked:
    """Give the account the state that its service reports."""
    state, why, silent = answered.state, answered.why, answered.silent
    if state is AccountState.UNREACHABLE and why:
        _remember(account, why, TroubleKind.UNREACHABLE if silent else TroubleKind.SERVER_ERRORS)
    if state in {AccountState.STOPPED, AccountState.STARTING} and account.status == AccountStatus.OFFLINE:
        _remember(account, why or REASONS[state], TroubleKind.NOT_CONNECTED)
    if state is AccountState.WORKING:
        _forget(account)
    return Looked(account=take_state(account, state, reason=why), state=state, why=why)


@contextmanager
def _remembering(account: Account) -> Iterator[None]:
    """Keep on the account why it could not be connected, until it can: a message on one page is soon gone."""
    try:
        yield
    except ask.NoAnswerError as error:
        if isinstance(error.__cause__, UnansweredError):
            _remember(account, str(error.__cause__), _kind_of(error.__cause__))
        raise
    _forget(account)


def _kind_of(error: UnansweredError) -> TroubleKind:
    if error.silent or isinstance(error.outcome, Unreachable):
        return TroubleKind.UNREACHABLE
    there = isinstance(error.outcome, NotConnected)
    return TroubleKind.NOT_CONNECTED if there else TroubleKind.SERVER_ERRORS


def _remember(account: Account, why: str, kind: TroubleKind) -> None:
    """Keep the reason, unless the engine knows of some trouble, which counts more.

    For an offline account this is the last known reason.
    """
    told = Q(trouble_count=0) | Q(status=AccountStatus.OFFLINE) & ~Q(trouble_kind=TroubleKind.RATE_LIMITED)
    rows = Account.objects.filter(told, pk=account.pk)
    rows.update(trouble_kind=kind, trouble=why[:500])
    rows.filter(trouble_since=None).update(trouble_since=timezone.now())


def _forget(account: Account) -> None:
    """Clear a reason that was kept here. The engine clears its own trouble when a message gets through."""
    rows = Account.objects.filter(pk=account.pk, trouble_count=0)
    rows.update(trouble_kind="", trouble="", trouble_since=None)


def log_out(account: Account, *, by: User) -> Account:
    """Make the service forget the pairing; pause the account's runs. Raise NoAnswerError."""
    require_touch(account, by, Role.MANAGE)
    record("account.logged_out", account, by=by)
    ask.ask(account, lambda transport: transport.disconnect())
    Account.objects.filter(pk=account.pk).update(session_at=timezone.now())
    return lifecycle.stop_account(account, status=AccountStatus.UNPAIRED, reason=f"logged out by {by}", by=by)


def renew_webhook(account: Account, *, by: User) -> Account:
    """Give the account another address and secret; reports to the old ones are refused. Raise NoAnswerError."""
    require_touch(account, by, Role.MANAGE)
    account.webhook, account.reports_to = new_webhook(), ""
    with transaction.atomic():
        account.save(update_fields=["webhook", "reports_to"])
        record("account.webhook_renewed", account, by=by)
    try:
        return connect(account, by=None)
    except calls.BusyError as error:
        sentence = "New address created. The service learns it within a few minutes."
        raise ask.NoAnswerError(sentence) from error


def pairing(account: Account, *, by: User) -> Pairing | None:
    """Return the code to scan now, None while the service has none yet; raise NoAnswerError."""
    require_touch(account, by, Role.MANAGE)
    return ask.ask(account, lambda transport: transport.pairing())


def pairing_code(account: Account, phone: str, *, by: User) -> str:
    """Return the code to type on the phone with that number; raise NoAnswerError."""
    require_touch(account, by, Role.MANAGE)
    record("account.connected", account, by=by, note="asked for a code to type on the phone")
    return ask.ask(account, lambda transport: transport.pairing_code(phone))


def hear(account: Account, state: AccountState, *, at: datetime, reason: str = "") -> Account:
    """Apply the state that a webhook reports, unless a later one is known already."""
    newest = Account.objects.filter(Q(session_at=None) | Q(session_at__lt=at), pk=account.pk)
    if not newest.update(session_at=at):
        return account
    return take_state(account, state, reason=reason)


def register_webhooks() -> None:
    """Tell services our webhook address where they do not know it: a few per pass, owners in turn."""
    with one_pass("webhooks") as free:
        if free:
            _register_webhooks()


def _register_webhooks() -> None:
    reporting = [kind for kind, transport in kinds().items() if transport.default_capabilities.webhooks]
    now = timezone.now()
    waiting = Account.objects.active().filter(
        Q(reports_tried_at=None) | Q(reports_tried_at__lt=now - TRY_AGAIN),
        transport__in=reporting,
        archived_at=None,
    )
    unaware = waiting.exclude(reports_to=settings.PUBLIC_URL) if settings.PUBLIC_URL else waiting.none()
    longest = F("reports_tried_at").asc(nulls_first=True)
    turn = Window(RowNumber(), partition_by="owner", order_by=longest)
    ends = time.monotonic() + SHIFT_SECONDS
    for account in unaware.annotate(turn=turn).order_by("turn", longest)[:MOST_AT_ONCE]:
        if time.monotonic() > ends:
            break  # the next pass continues
        with suppress(ask.NoAnswerError):  # the engine meets the same trouble, and shows it
            connect(account, by=None)


def take_state(account: Account, state: AccountState, *, reason: str = "", by: User | None = None) -> Account:
    """Move the account to the status that its service's state means."""
    account.refresh_from_db(fields=["status"])
    old = AccountStatus(account.status)
    new = follows(old, state, asked=by is not None)
    if new == old:
        return account
    if new is AccountStatus.ACTIVE:
        account = lifecycle.start_account(account, by=by)
        own_limits.later(account)
        _read_groups_once(account)
        return account
    why = "" if new is AccountStatus.PAIRING else reason or REASONS.get(state, "")
    return lifecycle.stop_account(account, status=new, reason=why, by=by)


def _read_groups_once(account: Account) -> None:
    """Read the groups of a newly connected account once; after that, a person says when to read them again."""
    kind = kinds()[account.transport]
    if kind.default_capabilities.groups and not account.syncs.exists():
        groups.start(account, by=None)
