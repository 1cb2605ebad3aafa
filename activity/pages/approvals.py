"""The pages of approvals: the list, one request as it would leave, and the decision of a second person."""

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_GET, require_POST

from accounts.access import seen, touched, user_of
from accounts.approvals import requests
from accounts.approvals.requests import DecidedError, decidable, deciders_of, may_decide, why_not
from accounts.approvals.rules import covers
from accounts.models import Account, Approval, Role, User
from accounts.paging import page_of
from accounts.roles import may_touch, owners_seen_by, visible
from delivery.hand_over.preview import preview as hand_over_preview
from delivery.hand_over.split import Wish
from delivery.states import IllegalMoveError
from delivery.window import day_names
from queues import approval as of_queues
from queues.models import Queue
from reminders import preview
from reminders.approvals import deciding
from reminders.approvals.content import content_of
from reminders.by_hand.last_look import last_look
from reminders.forecast import forecast
from reminders.message import typed_of
from reminders.models import Part, Reminder
from reminders.schedule_words import timing_of

Kind, State = Approval.Kind, Approval.State
MOST_NAMED = 5
REFUSALS = (DecidedError, PermissionDenied)


def rows() -> QuerySet[Approval]:
    return Approval.objects.select_related("owner", "asked_by", "decided_by", "reminder", "run", "account")


@login_required
@require_GET
def approval_list(request: HttpRequest) -> HttpResponse:
    """Show what waits, and below it what was decided."""
    user = user_of(request)
    mine = visible(rows().defer("run__parts"), user)
    waiting = list(mine.waiting().order_by("pk")[:100])  # type: ignore[attr-defined]
    theirs = decidable(waiting, user)
    context = {
        "waiting": [(each, each.pk in theirs) for each in waiting],
        "page": page_of(mine.exclude(state=State.WAITING), request.GET, newest_first=True),
    }
    return render(request, "approvals/list.html", context)


@login_required
@require_GET
def approval(request: HttpRequest, pk: int) -> HttpResponse:
    found, user = seen(rows(), request, pk), user_of(request)
    waits = found.state == State.WAITING
    shown = _preview(found, user) if waits else {}
    context: dict[str, Any] = {
        "approval": found,
        "waits": waits,
        "decides": waits and may_decide(found, user) and not shown.get("changed"),
        "why_not": why_not(found, user),
        "deciders": [str(each) for each in deciders_of(found)[:MOST_NAMED]] if waits else [],
        "may_withdraw": waits and (found.asked_by_id == user.pk or may_touch(found, user, Role.SEND)),
        "url": deciding.url_of(found),
        "queue": Queue.objects.filter(carrier=found.reminder_id).first()
        if found.kind == Kind.QUEUE
        else None,
    }
    return render(request, "approvals/page.html", context | shown)


@login_required
@require_POST
def approve(request: HttpRequest, pk: int) -> HttpResponse:
    """Approve what the person saw; it leaves at once, or at its time."""
    found, by = touched(rows(), request, pk, Role.SEND), user_of(request)
    try:
        seen = request.POST.get("recipients", "")
        number = int(seen) if seen.isascii() and seen.isdigit() and len(seen) < 10 else 0
        done = deciding.approve(found, content=request.POST.get("content", ""), by=by, seen=number)
    except REFUSALS as error:
        messages.error(request, str(error))
        return redirect("approvals:page", pk)
    messages.success(request, f"Approved: {done.title}.")
    return redirect(deciding.url_of(done))


@login_required
@require_POST
def refuse(request: HttpRequest, pk: int) -> HttpResponse:
    """Refuse what the person saw, with a reason."""
    found, by = touched(rows(), request, pk, Role.SEND), user_of(request)
    content, reason = request.POST.get("content", ""), request.POST.get("reason", "")
    try:
        done = deciding.refuse(found, content=content, reason=reason, by=by)
        messages.success(request, f"Refused: {done.title}. Whoever asked reads your reason.")
    except REFUSALS as error:
        messages.error(request, str(error))
    return redirect("approvals:page", pk)


@login_required
@require_POST
def withdraw(request: HttpRequest, pk: int) -> HttpResponse:
    found = touched(rows(), request, pk, Role.SEND)
    try:
        requests.withdraw(found, by=user_of(request))
        messages.success(request, f"Taken back: {found.title}.")
    except REFUSALS as error:
        messages.error(request, str(error))
    return redirect("approvals:page", pk)


def waiting_for(user: User, *, most: int) -> list[tuple[Approval, bool]]:
    """Return what waits for approval, each with whether this person may decide; first what they may."""
    found = (
        Approval.objects.waiting()
        .filter(owner__in=owners_seen_by(user))
        .select_related("asked_by", "reminder")
    )
    if user.is_staff:
        found = Approval.objects.waiting().select_related("asked_by", "reminder")
    waiting = list(found.order_by("pk")[: most * 4])
    theirs = decidable(waiting, user)
    return sorted(((each, each.pk in theirs) for each in waiting), key=lambda each: not each[1])[:most]


def _preview(found: Approval, user: User) -> dict[str, Any]:
    """Return what would leave, and whether it is something else by now than what was asked for."""
    if found.kind in {Kind.REMINDER, Kind.SEND} and found.reminder is not None:
        return _of_reminder(found, found.reminder)
    if found.kind == Kind.QUEUE:
        return _of_queue(found)
    if found.kind == Kind.HAND_OVER and found.run is not None:
        return _of_hand_over(found, user)
    return {}


def _of_reminder(found: Approval, reminder: Reminder) -> dict[str, Any]:
    """Return the reminder as it would leave. The fingerprint is taken last, so that it is not older than the rest."""
    now = timezone.now()
    parts = list(reminder.parts.select_related("media").order_by("role", "position"))
    first = [typed_of(part) for part in parts if part.role == Part.Role.FIRST]
    second = [typed_of(part) for part in parts if part.role == Part.Role.SECOND]
    look, timing = last_look(reminder, now=now), timing_of(reminder, now=now)
    fires_at = now if found.kind == Kind.SEND or not timing.firings else timing.firings[0]
    shown = {
        "reminder": reminder,
        "look": look,
        "preview": preview.preview(reminder, first, second),
        "timing": timing,
        "days": day_names(reminder.send_days),
        "tags": list(reminder.tags.all()),
        "steps": list(reminder.follow_up_steps.all()),
        "forecast": forecast(reminder, now=now, fires_at=fires_at, reached=look.audience),
        "again": found.said.get("again", ""),
    }
    reached = look.audience.reached
    more = {"seen": reached, "more": reached > found.covers, "covers": covers(max(reached, found.recipients))}
    return shown | more | {"changed": content_of(reminder) != found.content}


def _of_queue(found: Approval) -> dict[str, Any]:
    queue = Queue.objects.filter(carrier=found.reminder_id).first()
    if queue is None:
        return {"changed": True}
    accounts = Account.objects.filter(queue_accounts__queue=queue).defer("credentials").order_by("name")
    shown = {"queue": queue, "accounts": list(accounts), "days": day_names(queue.send_days)}
    return shown | {"changed": of_queues.content_of(queue) != found.content}


def _of_hand_over(found: Approval, user: User) -> dict[str, Any]:
    if found.run is None:
        return {"changed": True}
    wish = Wish(to=found.said["to"], known=found.said["known"], of=found.said["of"])
    try:
        look = hand_over_preview(found.run, wish, now=timezone.now(), by=user)
    except (IllegalMoveError, PermissionDenied) as error:
        return {"refused": str(error)}
    return {"hand_over": look, "changed": look.split.moved > found.covers}
