"""Administration of reminders, their media and their follow-ups."""

from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.http import HttpRequest
from django.template.defaultfilters import filesizeformat
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from accounts.access import user_of
from accounts.admin.archiving import ArchivedFilter
from accounts.admin.lists import list_link, moment_column, pill_column
from accounts.admin.roles import KeptAdmin, RoleAdmin, RoleInline, ViewAdmin
from accounts.generics import ModelForm
from accounts.models import Recipient
from accounts.paging import counted
from accounts.zones import ChecksZone
from activity.components.times import dated
from delivery.models import Run
from delivery.pages.days_field import SendDaysField
from delivery.window import day_names, zone_of
from reminders.admin.actions import ReminderMoves
from reminders.admin.asks_again import AsksAgain, changed_by
from reminders.calendar.next_firings import rhythm
from reminders.form_fields import WallClockField
from reminders.models import FollowUp, FollowUpStep, Media, Part, Reminder, ReminderAccount
from reminders.moments import BadCronError, check_cron, instant_of, too_far, upcoming
from reminders.readiness import NotReadyError, timetable_of
from reminders.schedule_words import too_often
from reminders.scheduling import reschedule


class PartInline(RoleInline[Part, Reminder]):
    model = Part
    readonly_fields = ("other_wordings",)
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
    readonly_fields = ("other_wordings",)


class ReminderForm(ChecksZone, ModelForm[Reminder]):
    send_days = SendDaysField()
    fire_at = WallClockField(required=False, help_text="In the time zone of the reminder.")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.instance.fire_at is not None:
            there = self.instance.fire_at.astimezone(zone_of(self.instance.zone))
            self.initial["fire_at"] = there.replace(tzinfo=None)

    def clean_cron(self) -> str:
        cron: str = self.cleaned_data["cron"]
        try:
            if cron:
                check_cron(cron)
        except BadCronError as error:
            raise ValidationError(str(error)) from error
        return cron

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        if wall := cleaned.get("fire_at"):
            if why := too_far(wall, timezone.now()):
                self.add_error("fire_at", why)
            elif cleaned.get("zone"):
                cleaned["fire_at"] = instant_of(wall, cleaned["zone"])
        return cleaned


@admin.register(Reminder)
class ReminderAdmin(ReminderMoves, KeptAdmin[Reminder]):
    """Pages of reminders. Nobody types a status: actions of the list and buttons of the page change it."""

    form = ReminderForm
    page = "reminders:page"
    list_display = ("__str__", "owner", "state", "channel", "schedule", "next_firing", "window")
    list_filter = ("status", "schedule", "channel", "on_close", ArchivedFilter)
    list_select_related = ("owner",)
    search_fields = ("name", "^owner__username")
    autocomplete_fields = ("owner", "tags")
    settled_when_made = ("owner", "channel")
    inlines = (PartInline, ReminderAccountInline, FollowUpStepInline)
    ordering = ("-id",)
    actions = ("schedule", "switch_off", "fire_now", "archive", "unarchive")
    in_use = "still scheduled: switch it off first"
    readonly_fields = (
        "state",
        "firings",
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
                "description": "Individual recipients, and everyone who has one of the tags at sending time.",
            },
        ),
        (
            "When",
            {
                "fields": (*schedule_fields, "firings", "on_overlap", "on_paused"),
                "description": "All times are in the reminder's time zone. Switch a scheduled reminder off before you "
                "change its times.",
            },
        ),
        (
            "Window",
            {
                "fields": (("window_start_hour", "window_end_hour"), "send_days", "on_close", "priority"),
                "description": "Messages are sent only in these hours (0 to 24) and on these days.",
            },
        ),
        (
            "Spread over days",
            {"classes": ("collapse",), "fields": ("drip", ("drip_gap_min", "drip_gap_max"))},
        ),
        ("Dates", {"fields": ("created_at", "updated_at", "archived_at")}),
    )

    state = pill_column("status", "Status")
    next_firing = moment_column("next_fire_at", "Next")

    @admin.display(description="Window")
    def window(self, reminder: Reminder) -> str:
        hours = f"{reminder.window_start_hour:02}-{reminder.window_end_hour:02}"
        return f"{hours} {reminder.zone}, {day_names(reminder.send_days)}"

    @admin.display(description="Next")
    def firings(self, reminder: Reminder) -> SafeString | str:
        """Return the schedule in words, and the next five times."""
        timetable = timetable_of(reminder)
        if reminder.status != Reminder.Status.SCHEDULED or timetable is None:
            return "Not scheduled" if timetable else "Manual"
        now = timezone.now()
        ahead = upcoming(timetable, after=now)
        lines = [f"{rhythm(reminder)}:", *(dated(at, zone_of(reminder.zone), now=now) for at in ahead)]
        return format_html_join(mark_safe("<br>"), "{}", ((line,) for line in lines))

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

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        """Check that a scheduled reminder can still be sent. Staff may save it anyway, with a warning."""
        super().save_related(request, form, formsets, change)
        changed_by(form.instance, user_of(request))
        try:
            reschedule(form.instance, by=user_of(request))
        except NotReadyError as error:
            self.message_user(request, f"Saved, but it cannot be sent like this. {error}", messages.WARNING)
        timetable = timetable_of(form.instance)
        for warning in too_often(timetable, timezone.now()) if timetable else ():
            self.message_user(request, warning, messages.WARNING)


@admin.register(Part)
class PartAdmin(AsksAgain, RoleAdmin[Part]):
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
class ReminderAccountAdmin(AsksAgain, RoleAdmin[ReminderAccount]):
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
    """Pages of files. Files are uploaded, which computes their hash; runs that were fired may still need them."""

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
class FollowUpStepAdmin(AsksAgain, RoleAdmin[FollowUpStep]):
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
    """A list of the follow-up queue. Its rules fill and empty it; each follow-up leaves with a reason."""

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
