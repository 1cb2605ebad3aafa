"""Administration of reminders and what they say."""

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.template.defaultfilters import filesizeformat
from django.utils.html import format_html
from django.utils.safestring import SafeString

from accounts.admin_archive import ArchivedFilter, Archiving
from accounts.admin_generics import ModelForm
from accounts.admin_lists import counted, list_link, moment_column, pill_column
from accounts.admin_roles import KeptAdmin, RoleAdmin, RoleInline, ViewAdmin
from accounts.models import Recipient
from delivery.models import Run
from delivery.send_days import day_names
from reminders.models import FollowUp, FollowUpStep, Media, Part, Reminder, ReminderAccount
from reminders.send_days import SendDaysField


class PartInline(RoleInline[Part, Reminder]):
    model = Part
    autocomplete_fields = ("media",)
    list_select_related = ("reminder", "media")


class ReminderAccountInline(RoleInline[ReminderAccount, Reminder]):
    model = ReminderAccount
    autocomplete_fields = ("account",)
    list_select_related = ("reminder", "account")
    unread = ("account__credentials",)
    verbose_name = "account"


class FollowUpStepInline(RoleInline[FollowUpStep, Reminder]):
    model = FollowUpStep


class ReminderForm(ModelForm[Reminder]):
    send_days = SendDaysField()


@admin.register(Reminder)
class ReminderAdmin(Archiving, KeptAdmin[Reminder]):
    """Scheduling and switching off are not typed but done: those moves belong among the `actions`."""

    form = ReminderForm
    list_display = ("__str__", "owner", "state", "channel", "schedule", "next_firing", "window")
    list_filter = ("status", "schedule", "channel", "on_close", ArchivedFilter)
    list_select_related = ("owner",)
    search_fields = ("name", "^owner__username")
    autocomplete_fields = ("owner", "tags")
    settled_when_made = ("owner", "channel")
    inlines = (PartInline, ReminderAccountInline, FollowUpStepInline)
    ordering = ("-id",)
    actions = ("archive", "unarchive")
    in_use = "still scheduled: switch it off first"
    readonly_fields = (
        "state",
        "next_fire_at",
        "chosen_recipients",
        "runs",
        "created_at",
        "updated_at",
        "archived_at",
    )
    schedule_fields = ("schedule", "fire_at", "cron", "zone")
    fieldsets = (
        (None, {"fields": ("owner", "name", "state", "channel", "action", "subject", "runs")}),
        (
            "Recipients",
            {
                "fields": ("chosen_recipients", "tags"),
                "description": "Those chosen one by one, and everyone who has one of the tags when it fires.",
            },
        ),
        (
            "When",
            {
                "fields": (*schedule_fields, "next_fire_at", "on_overlap"),
                "description": "In the reminder's own zone. A scheduled one is switched off before its times "
                "are changed.",
            },
        ),
        (
            "Window",
            {
                "fields": (("window_start_hour", "window_end_hour"), "send_days", "on_close", "priority"),
                "description": "Nothing leaves outside these hours, from 0 to 24, nor on another day.",
            },
        ),
        ("Drip", {"classes": ("collapse",), "fields": ("drip", ("drip_gap_min", "drip_gap_max"))}),
        ("Dates", {"fields": ("created_at", "updated_at", "archived_at")}),
    )

    state = pill_column("status", "Status")
    next_firing = moment_column("next_fire_at", "Fires next")

    @admin.display(description="Window")
    def window(self, reminder: Reminder) -> str:
        hours = f"{reminder.window_start_hour:02}-{reminder.window_end_hour:02}"
        return f"{hours} {reminder.zone}, {day_names(reminder.send_days)}"

    @admin.display(description="Chosen")
    def chosen_recipients(self, reminder: Reminder) -> SafeString | str:
        if not reminder.pk:
            return "-"
        count = counted(reminder.recipients.all())
        return format_html("{} {}", count, list_link(Recipient, "Show", reminders__id__exact=reminder.pk))

    @admin.display(description="Runs")
    def runs(self, reminder: Reminder) -> SafeString | str:
        return list_link(Run, "Show", reminder__id__exact=reminder.pk) if reminder.pk else "-"

    def get_readonly_fields(self, request: HttpRequest, obj: Reminder | None = None) -> tuple[str, ...]:
        fields = super().get_readonly_fields(request, obj)
        scheduled = obj is not None and obj.status == Reminder.Status.SCHEDULED
        return (*fields, *self.schedule_fields) if scheduled else fields

    def archivable(self, rows: QuerySet[Reminder]) -> QuerySet[Reminder]:
        return rows.exclude(status=Reminder.Status.SCHEDULED)


@admin.register(Part)
class PartAdmin(RoleAdmin[Part]):
    list_display = ("__str__", "reminder", "role", "kind", "excerpt", "media")
    list_filter = ("role", "kind")
    list_select_related = ("reminder", "media")
    search_fields = ("reminder__name",)
    autocomplete_fields = ("reminder", "media")
    settled_when_made = ("reminder",)
    ordering = ("-id",)
    fields = ("reminder", "role", "position", "kind", "text", "media")

    @admin.display(description="Text")
    def excerpt(self, part: Part) -> str:
        return part.text[:60]


@admin.register(ReminderAccount)
class ReminderAccountAdmin(RoleAdmin[ReminderAccount]):
    list_display = ("reminder", "account", "position")
    list_select_related = ("reminder", "account")
    unread = ("account__credentials",)
    search_fields = ("reminder__name", "account__name")
    autocomplete_fields = ("reminder", "account")
    settled_when_made = ("reminder",)
    ordering = ("-id",)
    fields = ("reminder", "account", "position")


@admin.register(Media)
class MediaAdmin(ViewAdmin[Media]):
    """Files come by upload, which takes their hash; runs that were fired may still need them."""

    list_display = ("filename", "owner", "content_type", "weight", "made")
    list_select_related = ("owner",)
    search_fields = ("filename", "^sha256")
    ordering = ("-id",)
    fields = ("owner", "filename", "content_type", "weight", "sha256", "created_at")

    made = moment_column("created_at", "Uploaded")

    @admin.display(description="Size", ordering="size")
    def weight(self, media: Media) -> str:
        return filesizeformat(media.size)


@admin.register(FollowUpStep)
class FollowUpStepAdmin(RoleAdmin[FollowUpStep]):
    list_display = ("__str__", "reminder", "position", "after_hours", "urgency")
    list_filter = ("urgency",)
    list_select_related = ("reminder",)
    search_fields = ("reminder__name",)
    autocomplete_fields = ("reminder",)
    settled_when_made = ("reminder",)
    ordering = ("-id",)
    fields = ("reminder", "position", "after_hours", "text", "urgency")


@admin.register(FollowUp)
class FollowUpAdmin(ViewAdmin[FollowUp]):
    """The queue fills and empties by its rules; each leaves with a reason."""

    list_display = ("recipient", "step", "urgency", "state", "due", "removed_reason")
    list_filter = ("status", "urgency")
    list_select_related = ("recipient", "step", "target__run", "target__recipient")
    unread = ("target__run__parts",)
    ordering = ("-id",)
    fields = (
        "recipient",
        "step",
        "target",
        "urgency",
        "state",
        "due_at",
        "removed_reason",
        "queued_at",
        "ended_at",
    )

    state = pill_column("status", "Status")
    due = moment_column("due_at", "Due")
