"""Administration of run targets: found by number or by run, with decisions about unconfirmed ones."""

from collections.abc import Iterable

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.safestring import SafeString

from accounts.admin.actions import MOST_AT_ONCE, Button, RowActions
from accounts.admin.lists import list_link, moment_column, pill_column
from accounts.models import User
from activity.models import Attempt
from delivery.admin.rows import RunRowsAdmin, WithinRunFilter
from delivery.admin.run_actions import show
from delivery.models import RunTarget, choices
from delivery.run_actions import TARGET_ACTIONS, Action, do_each
from delivery.states import TargetStatus


class StatusFilter(WithinRunFilter):
    title = "status"
    parameter_name = field = "status"
    options = choices(TargetStatus)


@admin.register(RunTarget)
class RunTargetAdmin(RowActions, RunRowsAdmin[RunTarget]):
    """Run targets. An unconfirmed one may have arrived: a person marks it as sent, or sends it again."""

    list_display = ("id", "state", "recipient", "account", "run", "attempts", "error", "planned", "settled")
    list_filter = (StatusFilter,)
    list_select_related = ("run", "recipient", "account")
    unread = ("account__credentials", "run__parts")
    # The index `target_by_status`.
    ordering_in_a_run = ("status", "id")
    actions = ("mark_sent", "send_again")
    fieldsets = (
        (None, {"fields": ("run", "recipient", "account", "state", "key", "ledger")}),
        (
            "Sending",
            {
                "fields": (
                    ("not_before", "attempts", "parts_done"),
                    ("claimed_at", "begun_at", "fence"),
                    ("settled_at", "provider_id"),
                    "error",
                ),
                "description": "Once begun, a message may have left: a crash leaves it in doubt.",
            },
        ),
        (
            "Receipts",
            {
                "fields": (("delivered_at", "read_at"), ("returned_at", "return_kind"), "return_reason"),
                "description": "Reports of the service after it took the message.",
            },
        ),
    )

    state = pill_column("status", "Status")
    planned = moment_column("not_before", "Not before")
    settled = moment_column("settled_at", "Settled")

    @admin.display(description="Ledger")
    def ledger(self, target: RunTarget) -> SafeString:
        return list_link(Attempt, "Show", target__id__exact=target.pk)

    def buttons(self, row: RunTarget) -> Iterable[Button]:
        for name, verb in (("mark_sent", "confirm"), ("send_again", "resend")):
            action = TARGET_ACTIONS[verb]
            if action.suits(row):
                yield Button(action=name, label=action.label)

    @admin.action(description="Mark the selected unconfirmed targets sent", permissions=["view"])
    def mark_sent(self, request: HttpRequest, chosen: QuerySet[RunTarget]) -> HttpResponse | None:
        return self._decide(request, chosen, TARGET_ACTIONS["confirm"])

    @admin.action(description="Send to the selected unconfirmed targets again", permissions=["view"])
    def send_again(self, request: HttpRequest, chosen: QuerySet[RunTarget]) -> HttpResponse | None:
        return self._decide(request, chosen, TARGET_ACTIONS["resend"])

    def _decide(
        self, request: HttpRequest, chosen: QuerySet[RunTarget], action: Action[RunTarget]
    ) -> HttpResponse | None:
        """Do the action to the first of the chosen targets, and say how many are left."""
        if isinstance(request.user, User):
            show(self, request, do_each(action, list(chosen[:MOST_AT_ONCE]), by=request.user))
            if (rest := chosen.count() - MOST_AT_ONCE) > 0:
                left = f"Not yet done: {rest:,} more. Choose them again."
                self.message_user(request, left, messages.WARNING)
        return self.back(request)
