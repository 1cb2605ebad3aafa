"""Lets a change of one row of a reminder ask for approval again, as an edit on the pages does."""

from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest

from accounts.access import user_of
from accounts.models import User
from reminders.approvals.asking import after_edit
from reminders.models import Reminder


def changed_by(reminder: Reminder, person: User) -> None:
    """Remember who changed what is sent, and ask again where that was approved."""
    Reminder.objects.filter(pk=reminder.pk).update(edited_by=person)
    after_edit(reminder, by=person)


class AsksAgain:
    """A part of the admin pages of rows that belong to a reminder."""

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: Any) -> None:
        super().save_model(request, obj, form, change)  # type: ignore[misc]  # ModelAdmin has it
        changed_by(obj.reminder, user_of(request))

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        reminder = obj.reminder
        super().delete_model(request, obj)  # type: ignore[misc]  # ModelAdmin has it
        changed_by(reminder, user_of(request))

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        reminders = list(Reminder.objects.filter(pk__in=queryset.values("reminder")))
        super().delete_queryset(request, queryset)  # type: ignore[misc]  # ModelAdmin has it
        for reminder in reminders:
            changed_by(reminder, user_of(request))
