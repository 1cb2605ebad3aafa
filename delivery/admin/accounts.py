"""Accounts with their state, live, and what a person can do to them: the same as on their pages."""

from collections.abc import Iterable
from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from accounts.admin.accounts import AccountAdmin
from accounts.admin.moves import Button, Moves, Question, confirmed
from accounts.models import Account
from accounts.roles import require_touch
from activity.templatetags.paceline import account_pill
from delivery import account_view, archiving, asking, connection, lifecycle, sync
from delivery.inbound import first_contacts
from delivery.models import RunAccount
from delivery.states import IllegalMoveError
from delivery.transports.base import AccountState

Chosen = QuerySet[Account]
Status = Account.Status


@admin.register(Account)
class LiveAccountAdmin(Moves, AccountAdmin):
    change_list_template = "admin/live_list.html"
    everything = "?archived=all"
    refusals = (IllegalMoveError, PermissionDenied, lifecycle.WrongStateError, asking.NoAnswerError)
    actions = (
        "pause_accounts",
        "resume_accounts",
        "connect",
        "check_connection",
        "read_groups",
        "unlock",
        "log_out",
        "archive",
        "unarchive",
    )

    @admin.display(description="Status", ordering="status")
    def state(self, account: Account) -> SafeString:
        return account_pill(account)

    def buttons(self, row: Account) -> Iterable[Button]:
        if row.archived_at:
            yield Button(action="unarchive", label="Bring it back")
            return
        can = account_view.capabilities_of(row)
        if row.status in {Status.ACTIVE, Status.OFFLINE}:
            yield Button(action="pause_accounts", label="Pause")
        if row.status == Status.PAUSED:
            yield Button(action="resume_accounts", label="Resume")
        if row.status in {Status.UNPAIRED, Status.PAIRING, Status.OFFLINE, Status.FLAGGED}:
            yield Button(action="connect", label="Pair it" if can.pairing else "Reconnect")
        yield Button(action="check_connection", label="Check the connection")
        if can.groups:
            yield Button(action="read_groups", label="Read its groups")
        if row.first_contacts_until:
            yield Button(action="unlock", label="New people can be written to")
        if can.pairing and row.status != Status.UNPAIRED:
            yield Button(action="log_out", label="Log out", gives_up=True)
        yield Button(action="archive", label="Archive", gives_up=True)

    @admin.action(description="Pause the selected accounts", permissions=["view"])
    def pause_accounts(self, request: HttpRequest, chosen: Chosen) -> HttpResponse | None:
        return self.each(request, chosen, lifecycle.pause_account, "Paused")

    @admin.action(description="Resume the selected accounts", permissions=["view"])
    def resume_accounts(self, request: HttpRequest, chosen: Chosen) -> HttpResponse | None:
        return self.each(request, chosen, lifecycle.start_account, "Active again")

    @admin.action(description="Connect the selected accounts again", permissions=["view"])
    def connect(self, request: HttpRequest, chosen: Chosen) -> HttpResponse | None:
        def connect(account: Account, *, by: Any) -> None:
            require_touch(account, by)
            if connection.connect(account, by=by).status == Status.PAIRING:
                where = reverse("accounts:pair", args=[account.pk])
                told = format_html('{} waits for its code: <a href="{}">pair it</a>.', account, where)
                self.message_user(request, told, messages.INFO)

        return self.each(request, chosen, connect, "Asked to connect")

    @admin.action(description="Check the connection of the selected accounts", permissions=["view"])
    def check_connection(self, request: HttpRequest, chosen: Chosen) -> HttpResponse | None:
        def check(account: Account, *, by: Any) -> None:
            require_touch(account, by)
            _, state = connection.look(account)
            if state is not AccountState.WORKING:
                raise lifecycle.WrongStateError(connection.LOOKED[state])

        return self.each(request, chosen, check, "Connected")

    @admin.action(description="Read the groups of the selected accounts", permissions=["view"])
    def read_groups(self, request: HttpRequest, chosen: Chosen) -> HttpResponse | None:
        return self.each(request, chosen, sync.start, "Groups are being read")

    @admin.action(description="Let the selected accounts write to new people again", permissions=["view"])
    def unlock(self, request: HttpRequest, chosen: Chosen) -> HttpResponse | None:
        return self.each(request, chosen, first_contacts.unlock, "Messages to new people leave again")

    @admin.action(description="Log the selected accounts out of their service", permissions=["view"])
    def log_out(self, request: HttpRequest, chosen: Chosen) -> HttpResponse | None:
        if confirmed(request):
            return self.each(request, chosen, connection.log_out, "Logged out")
        runs = RunAccount.objects.filter(account__in=chosen, open=True).values("run").distinct().count()
        asked = Question(
            action="log_out",
            title="Log out of the service?",
            sentence="Their service forgets the phone, and nothing leaves until it is paired again. "
            f"{runs:,} open run{' pauses' if runs == 1 else 's pause'}.",
            button=f"Log out ({len(chosen):,})",
            rows=[(account, account_pill(account)) for account in chosen],
            gives_up=True,
        )
        return self.ask(request, asked)

    @admin.action(description="Archive the selected accounts", permissions=["view"])
    def archive(self, request: HttpRequest, chosen: Chosen) -> HttpResponse | None:
        if confirmed(request):
            return self.each(request, chosen, archiving.archive, "Archived")
        asked = Question(
            action="archive",
            title="Archive?",
            sentence="They are paused and put out of sight; their history stays, and they can be brought back.",
            button=f"Archive ({len(chosen):,})",
            rows=[(account, _reminders(account)) for account in chosen],
            gives_up=True,
        )
        return self.ask(request, asked)

    @admin.action(description="Bring the selected accounts back", permissions=["view"])
    def unarchive(self, request: HttpRequest, chosen: Chosen) -> HttpResponse | None:
        return self.each(request, chosen, archiving.unarchive, "Brought back")


def _reminders(account: Account) -> str:
    count = account.reminder_accounts.count()
    return f"{count:,} reminder{' sends' if count == 1 else 's send'} from it" if count else ""
