"""The record of who stopped all sending and who started it again. Its own page does both."""

from django.contrib import admin

from accounts.admin.lists import moment_column
from accounts.admin.roles import ViewAdmin
from accounts.models import SendingStop


@admin.register(SendingStop)
class SendingStopAdmin(ViewAdmin[SendingStop]):
    list_display = ("id", "owner", "reason", "stopped", "stopped_by", "ended", "ended_by")
    list_select_related = ("owner", "stopped_by", "ended_by")
    fields = ("owner", "reason", "stopped_at", "stopped_by", "ended_at", "ended_by")

    stopped = moment_column("stopped_at", "Stopped")
    ended = moment_column("ended_at", "Started again")
