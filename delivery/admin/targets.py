"""Run targets: by number or by run, and what a person decides about those in doubt."""

from collections.abc import Iterable

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.safestring import SafeString

from accounts.admin.lists import list_link, moment_column, pill_column
from accounts.admin.moves import Button, Moves
from activity.models import Attempt
from delivery import lifecycle
from delivery.admin.rows import RunRowsAdmin, WithinRunFilter
from delivery.models import RunTarget, choices
from delivery.states import IllegalMoveError, TargetStatus


class StatusFilter(WithinRunFilter):
    title = "status"
    parameter_name = field = "status"
    options = choices(TargetStatus)


@admin.register(RunTarget)
class RunTargetAdmin(Moves, RunRowsAdmin[RunTarget]):
    """An unconfirmed target may have arrived: a person says so, or has it sent again."""

    refusals = (PermissionDenied, IllegalMoveError, lifecycle.WrongStateError)

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
        ("Receipts", {"fields": (("delivered_at", "read_at"),)}),
    )

    state = pill_column("status", "Status")
    planned = moment_column("not_before", "Not before")
    settled = moment_column("settled_at", "Settled")

    @admin.display(description="Ledger")
    def ledger(self, target: RunTarget) -> SafeString:
        return list_link(Attempt, "Show", target__id__exact=target.pk)

    def buttons(self, row: RunTarget) -> Iterable[Button]:
        if row.status == TargetStatus.UNCONFIRMED:
            yield Button(action="mark_sent", label="Mark sent")
            yield Button(action="send_again", label="Send again")

    @admin.action(description="Mark the selected unconfirmed targets sent", permissions=["view"])
    def mark_sent(self, request: HttpRequest, chosen: QuerySet[RunTarget]) -> HttpResponse | None:
        return self.each(request, chosen, lifecycle.confirm, "Marked sent")

    @admin.action(description="Send to the selected unconfirmed targets again", permissions=["view"])
    def send_again(self, request: HttpRequest, chosen: QuerySet[RunTarget]) -> HttpResponse | None:
        return self.each(request, chosen, lifecycle.resend, "Sent again")
