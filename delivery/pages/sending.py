"""The page that stops and starts all sending: for one owner, and for staff also for everybody."""

from dataclasses import dataclass

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods

from accounts.access import user_of
from accounts.models import Role, SendingStop, User
from accounts.roles import owners_for
from delivery.recovery import stop_sending

LATEST = 20
MOST_OWNERS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Switch:
    """The sending of one owner or of everybody: a name, and the stop that is active."""

    key: str  # "all", or the owner's number
    name: str
    stop: SendingStop | None


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def sending(request: HttpRequest) -> HttpResponse:
    user = user_of(request)
    if request.method == "POST":
        _turn(request, user)
        return redirect("sending")
    history = SendingStop.objects.select_related("owner", "stopped_by", "ended_by")
    if not user.is_staff:
        history = history.filter(Q(owner=None) | Q(owner__in=owners_for(user, Role.SEND)))
    return render(
        request, "accounts/sending.html", {"switches": _switches(user), "history": history[:LATEST]}
    )


def _turn(request: HttpRequest, user: User) -> None:
    key = request.POST.get("whose", "")
    owner = (
        None
        if key == "all"
        else get_object_or_404(owners_for(user, Role.SEND), pk=key if key.isdecimal() else 0)
    )
    if request.POST.get("to") == "start":
        try:
            done, told = stop_sending.start(owner, by=user), "Sending continues."
        except stop_sending.UndecidedError as error:
            messages.error(request, str(error))
            return
    else:
        reason = request.POST.get("reason", "").replace("\0", "").strip()
        done, told = (
            stop_sending.stop(owner, reason=reason, by=user),
            "Sending is stopped. No messages are sent.",
        )
    messages.success(request, told if done else "Nothing changed: somebody else did this already.")


def _switches(user: User) -> list[Switch]:
    stops = {
        row.owner_id: row for row in SendingStop.objects.filter(ended_at=None).select_related("stopped_by")
    }
    everybody = [Switch(key="all", name="Everybody", stop=stops.get(None))] if user.is_staff else []
    return everybody + [
        Switch(key=str(owner.pk), name=str(owner), stop=stops.get(owner.pk))
        for owner in owners_for(user, Role.SEND)[:MOST_OWNERS]
    ]
