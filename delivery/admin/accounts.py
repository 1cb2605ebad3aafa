"""Administration of accounts with their live state, and the same actions as on their pages."""

from collections.abc import Iterable
from typing import Any
from zoneinfo import ZoneInfo

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

from accounts.admin.accounts import AccountAdmin, AccountForm
from accounts.admin.actions import Button, Question, RowActions, confirmed
from accounts.models import Account, Limit, Role
from accounts.roles import require_touch
from activity.templatetags.paceline import account_pill
from delivery import lifecycle
from delivery.limits.own import far_above
from delivery.models import RunAccount
from delivery.pages import account_facts
from delivery.pages.days_field import SendDaysField
from delivery.sentences import account_state
from delivery.sessions import archive as archiving
from delivery.sessions import ask, calls, first_contacts, groups, one_account
from delivery.sessions import connect as connection
from delivery.states import IllegalMoveError
from delivery.transports.base import AccountState

Chosen = QuerySet[Account]
Status = Account.Status


class OneSessionForm(AccountForm):
    """Refuse credentials of a session that another account uses, and hours that are none."""

    work_days = SendDaysField(label="Working days")

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        given = cleaned.get("new_credentials")
        # A new account has neither owner nor transport before its form is saved.
        entered = Account(owner=cleaned["owner"]) if cleaned.get("owner") else self.instance
        kind = cleaned.get("transport", "")
        if given and (taken := one_account.why_taken(entered, given, kind=kind)):
            self.add_error("new_credentials", taken)
        return cleaned

    def save(self, commit: bool = True) -> Account:
        if given := self.cleaned_data["new_credentials"]:
            self.also_changed += one_account.enter(self.instance, given)
        return super().save(commit)


@admin.register(Account)
class LiveAccountAdmin(RowActions, AccountAdmin):
    form = OneSessionForm
    change_list_template = "admin/live_list.html"
    everything = "?archived=all"

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        """Warn of limits that are far above the profile's, as the page does."""
        super().save_related(request, form, formsets, change)
        for limit in Limit.objects.filter(account=form.instance).select_related("account"):
            for warning in far_above(limit):
                self.message_user(request, warning, messages.WARNING)

    refusals = (
        IllegalMoveError,
        PermissionDenied,
        lifecycle.WrongStateError,
        ask.NoAnswerError,
        calls.BusyError,
    )
    actions = (
        "pause_accounts",
        "resume_accounts",
        "connect",
        "hand_over",
        "check_connection",
        "read_groups",
        "unlock",
        "lift_health",
        "log_out",
        "archive",
        "unarchive",
    )

    @admin.display(description="Status", ordering="status")
    def state(self, account: Account) -> SafeString:
        return account_pill(account)

    def get_changelist_instance(self, request: HttpRequest) -> Any:
        """Read the sentences of all rows at once."""
        found = super().get_changelist_instance(request)
        whys = account_state.whys(list(found.result_list), now=timezone.now())
        for account in found.result_list:
            account.why = whys[account.pk]
        return found

    @admin.display(description="Now")
    def waiting(self, account: Account) -> str:
        now = timezone.now()
        why = getattr(account, "why", None) or account_state.whys([account], now=now)[account.pk]
        return why.text(now, ZoneInfo(account.zone))

    def buttons(self, row: Account) -> Iterable[Button]:
        if row.archived_at:
            yield Button(action="unarchive", label="Unarchive")
            return
        can = account_facts.capabilities_of(row)
        if row.status in {Status.ACTIVE, Status.OFFLINE}:
            yield Button(action="pause_accounts", label="Pause")
        if row.status == Status.PAUSED:
            yield Button(action="resume_accounts", label="Resume")
        if row.status in {Status.UNPAIRED, Status.PAIRING, Status.OFFLINE, Status.FLAGGED}:
            yield Button(action="connect", label="Pair" if can.pairing else "Reconnect")
        yield Button(action="hand_over", label="Hand over its work")
        yield Button(action="check_connection", label="Check the connection")
        if can.groups:
            yield Button(action="read_groups", label="Read groups")
        if row.first_contacts_until:
            yield Button(action="unlock", label="Allow messages to new people")
        if row.health:
            yield Button(action="lift_health", label="Send at full speed again")
        if can.pairing and row.status != Status.UNPAIRED:
            yield Button(action="log_out", label="Log out", gives_up=True)
        yield Button(action="archive", label="Archive", gives_up=True)

    @admin.action(description="Pause the selected accounts", permissions=["view"])
    def pause_accounts(self, request: HttpRequest, chosen: Chosen) -> HttpResponse | None:
        return self.each(request, chosen, lifecycle.pause_account, "Paused")

    @admin.action(description="Resume the selected accounts", permissions=["view"])
    def resume_accounts(self, request: HttpRequest, chosen: Chosen) -> HttpResponse | None:
        return self.each(request, chosen, lifecycle.start_account, "Resumed")

    @admin.action(description="Connect the selected accounts again", permissions=["view"])
    def connect(self, request: HttpRequest, chosen: Chosen) -> HttpResponse | None:
        def connect(account: Account, *, by: Any) -> None:
            require_touch(account, by, Role.MANAGE)
            if connection.connect(account, by=by).status == Status.PAIRING:
                where = reverse("accounts:pair", args=[account.pk])
                told = format_html('{} is waiting for its code: <a href="{}">pair</a>.', account, where)
                self.message_user(request, told, messages.INFO)

        return self.each(request, chosen, connect, "Connection started")

    @admin.action(description="Hand over all work of the selected account", permissions=["view"])
    def hand_over(self, request: HttpRequest, chosen: Chosen) -> HttpResponse | None:
        """Open the page that shows both forecasts; it asks about one account at a time."""
        if chosen.count() != 1:
            self.message_user(request, "Choose one account to hand over.", messages.WARNING)
            return self.back(request)
        return redirect("accounts:hand_over", chosen[0].pk)

    @admin.action(description="Check the connection of the selected accounts", permissions=["view"])
    def check_connection(self, request: HttpRequest, chosen: Chosen) -> HttpResponse | None:
        def check(account: Account, *, by: Any) -> None:
            require_touch(account, by, Role.SEND)
            looked = connection.look(account)
            if looked.state is not AccountState.WORKING:
                raise lifecycle.WrongStateError(looked.sentence)

        return self.each(request, chosen, check, "Connected")

    @admin.action(description="Read the groups of the selected accounts", permissions=["view"])
    def read_groups(self, request: HttpRequest, chosen: Chosen) -> HttpResponse | None:
        return self.each(request, chosen, groups.start, "Reading groups")

    @admin.action(description="Allow the selected accounts to write to new people", permissions=["view"])
    def unlock(self, request: HttpRequest, chosen: Chosen) -> HttpResponse | None:
        return self.each(request, chosen, first_contacts.unlock, "Messages to new people allowed")

    @admin.action(description="Lift what health holds back in the selected accounts", permissions=["view"])
    def lift_health(self, request: HttpRequest, chosen: Chosen) -> HttpResponse | None:
        return self.each(request, chosen, lifecycle.lift_health, "Full speed again")

    @admin.action(description="Log the selected accounts out of their service", permissions=["view"])
    def log_out(self, request: HttpRequest, chosen: Chosen) -> HttpResponse | None:
        if confirmed(request):
            return self.each(request, chosen, connection.log_out, "Logged out")
        runs = RunAccount.objects.filter(account__in=chosen, open=True).values("run").distinct().count()
        asked = Question(
            action="log_out",
            title="Log out of the service?",
            sentence="The service forgets the phone. Nothing is sent until you pair it again. "
            f"{runs:,} open run{' is' if runs == 1 else 's are'} paused.",
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
            sentence="The accounts are paused and hidden. Their history is kept, and you can unarchive them.",
            button=f"Archive ({len(chosen):,})",
            rows=[(account, _reminders(account)) for account in chosen],
            gives_up=True,
        )
        return self.ask(request, asked)

    @admin.action(description="Unarchive the selected accounts", permissions=["view"])
    def unarchive(self, request: HttpRequest, chosen: Chosen) -> HttpResponse | None:
        return self.each(request, chosen, archiving.unarchive, "Unarchived")


def _reminders(account: Account) -> str:
    count = account.reminder_accounts.count()
    return f"used by {count:,} reminder{'' if count == 1 else 's'}" if count else ""
