"""Administration of queues, and of what their items say. People change both on the pages of queues."""

from collections.abc import Iterable

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse

from accounts.access import user_of
from accounts.admin.actions import Button, RowActions
from accounts.admin.archiving import ArchivedFilter
from accounts.admin.lists import list_link, moment_column
from accounts.admin.roles import ViewAdmin
from accounts.models import Role, User
from accounts.roles import touchable
from delivery.models import TargetContent
from queues import steering
from queues.models import Item, Queue, QueueAccount, QueueImport, Source, SourceRead, SourceRow
from queues.sources import manage
from queues.sources.manage import BadSourceError
from reminders.drafts import NotPossibleError

STEPS = {"pause": steering.pause, "resume": steering.resume, "archive": steering.archive}


@admin.register(Queue)
class QueueAdmin(RowActions, ViewAdmin[Queue]):
    """Queues: they are paused, resumed and archived here, and changed on their own pages."""

    list_display = ("__str__", "owner", "channel", "pace", "paused", "items")
    list_filter = ("channel", "pace", ArchivedFilter)
    list_select_related = ("owner",)
    search_fields = ("name", "^owner__username")
    ordering = ("-id",)
    actions = ("pause", "resume", "archive")
    fields = (
        ("name", "owner"),
        ("channel", "action", "pace"),
        ("zone", "window_start_hour", "window_end_hour", "send_days"),
        ("priority", "items"),
        ("paused_at", "created_at", "archived_at"),
    )

    paused = moment_column("paused_at", "Paused")

    @admin.display(description="Items")
    def items(self, queue: Queue) -> str:
        return list_link(Item, "Show", queue__id__exact=queue.pk)

    def buttons(self, row: Queue) -> Iterable[Button]:
        name, label = ("resume", "Resume") if row.paused_at else ("pause", "Pause")
        yield Button(action=name, label=label)

    @admin.action(description="Pause the selected queues", permissions=["view"])
    def pause(self, request: HttpRequest, queryset: QuerySet[Queue]) -> HttpResponse | None:
        return self._do(request, queryset, "pause", "Paused")

    @admin.action(description="Resume the selected queues", permissions=["view"])
    def resume(self, request: HttpRequest, queryset: QuerySet[Queue]) -> HttpResponse | None:
        return self._do(request, queryset, "resume", "Resumed")

    @admin.action(description="Archive the selected queues", permissions=["view"])
    def archive(self, request: HttpRequest, queryset: QuerySet[Queue]) -> HttpResponse | None:
        return self._do(request, queryset, "archive", "Archived")

    def _do(
        self, request: HttpRequest, queryset: QuerySet[Queue], step: str, done: str
    ) -> HttpResponse | None:
        number = 0
        for queue in touchable(queryset, request.user, Role.SEND):
            try:
                STEPS[step](queue, by=request.user if isinstance(request.user, User) else None)
                number += 1
            except NotPossibleError as error:
                self.message_user(request, str(error), messages.WARNING)
        if number:
            self.message_user(request, f"{done}: {number:,}.", messages.SUCCESS)
        return self.back(request)


@admin.register(QueueAccount)
class QueueAccountAdmin(ViewAdmin[QueueAccount]):
    """The accounts of queues."""

    list_display = ("queue", "account", "position")
    list_select_related = ("queue", "account")
    unread = ("account__credentials",)
    ordering = ("-id",)
    fields = ("queue", "account", "position")


@admin.register(QueueImport)
class QueueImportAdmin(ViewAdmin[QueueImport]):
    """Imports of items: their numbers and the first wrong rows."""

    list_display = ("id", "queue", "filename", "status", "saved_rows")
    list_select_related = ("queue",)
    ordering = ("-id",)
    fields = (
        ("queue", "made_by", "filename"),
        ("status", "problem"),
        ("counts", "saved_rows"),
        "problems",
        ("created_at", "started_at", "finished_at"),
    )


@admin.register(Item)
class ItemAdmin(ViewAdmin[Item]):
    """Items of queues; their progress is that of their targets."""

    list_display = ("id", "queue", "recipient", "source", "own_id", "planned", "withdrawn")
    list_select_related = ("queue", "recipient")
    search_fields = ("=own_id",)
    ordering = ("-id",)
    fields = (
        ("queue", "source", "own_id"),
        ("recipient", "account", "target"),
        ("priority", "planned_at", "moved_why"),
        ("withdrawn_at", "withdrawn_by", "late_change"),
        ("added_at", "changed_at"),
    )
    unread = ("account__credentials",)

    planned = moment_column("planned_at", "Planned")
    withdrawn = moment_column("withdrawn_at", "Withdrawn")


@admin.register(TargetContent)
class TargetContentAdmin(ViewAdmin[TargetContent]):
    """The contents of targets that have their own."""

    list_display = ("target_id", "subject")
    ordering = ("-target_id",)
    fields = ("target", "subject", "parts", "values")


@admin.register(Source)
class SourceAdmin(ViewAdmin[Source]):
    """Sources are made by their people; staff see how they go, can let them read and switch them off."""

    list_display = ("title", "kind", "owner", "queue", "stopped", "off")
    list_filter = ("kind",)
    list_select_related = ("owner", "queue")
    search_fields = ("^owner__username", "title")
    ordering = ("-id",)
    actions = ("read_now", "switch_off")
    unread = ("credentials",)
    fields = (
        ("title", "owner", "queue"),
        ("kind", "address", "every_minutes"),
        ("switched_off_at", "stopped_at", "stopped_why"),
        ("failing_since", "failures", "trouble", "retry_at"),
        ("next_read_at", "missing", "created_at"),
    )

    stopped = moment_column("stopped_at", "Stopped")
    off = moment_column("switched_off_at", "Switched off")

    @admin.action(description="Read the selected sources now")
    def read_now(self, request: HttpRequest, queryset: QuerySet[Source]) -> None:
        number = 0
        for source in queryset:
            try:
                manage.read_now(source, by=user_of(request))
                number += 1
            except BadSourceError as error:
                self.message_user(request, f"{source}: {error}", messages.WARNING)
        self.message_user(request, f"{number:,} are read within a few seconds.", messages.SUCCESS)

    @admin.action(description="Switch the selected sources off")
    def switch_off(self, request: HttpRequest, queryset: QuerySet[Source]) -> None:
        found = list(queryset.filter(switched_off_at=None))
        for source in found:
            manage.switch_off(source, by=user_of(request))
        self.message_user(request, f"Switched off: {len(found):,}.", messages.SUCCESS)


@admin.register(SourceRead)
class SourceReadAdmin(ViewAdmin[SourceRead]):
    """Reads of sources, with what they counted."""

    list_display = ("id", "source", "outcome", "started", "why")
    list_filter = ("outcome",)
    list_select_related = ("source",)
    ordering = ("-id",)
    unread = ("source__credentials",)
    fields = (("source", "outcome"), ("started_at", "ended_at"), "counts", "why")

    started = moment_column("started_at", "Began")


@admin.register(SourceRow)
class SourceRowAdmin(ViewAdmin[SourceRow]):
    """Rows of sources as they were read last, and why some were not taken."""

    list_display = ("id", "source", "own_id", "place", "problem")
    list_select_related = ("source",)
    search_fields = ("=own_id",)
    ordering = ("-id",)
    unread = ("source__credentials",)
    fields = (("source", "own_id", "place"), "item", "problem", "unwritten", ("missing_since", "due"))
