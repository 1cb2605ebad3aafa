"""The pages of one item: add, look at, change and withdraw it."""

from typing import Any
from uuid import uuid4

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from accounts.access import posted, seen, touched, user_of
from accounts.models import Role
from accounts.roles import may_touch
from delivery.window import zone_of
from queues.actions import Took, change, put, withdraw
from queues.models import Item, Queue
from queues.pages.forms import ItemForm
from queues.states import OPEN, ItemState, with_state
from reminders.drafts import NotPossibleError

SOURCE = "page"
ROWS = Item.objects.select_related(
    "queue__owner", "recipient", "target__run", "target__account", "account"
).defer("target__account__credentials", "account__credentials")


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def add(request: HttpRequest, pk: int) -> HttpResponse:
    queue, user = touched(Queue.objects.select_related("owner"), request, pk, Role.SEND), user_of(request)
    form = ItemForm(posted(request), queue=queue)
    if form.is_valid():
        # The key of the form: a second click names the same item.
        own_id = request.POST.get("key", "")[:60] or uuid4().hex
        try:
            (result,) = put(queue, [form.entry(own_id)], source=SOURCE, by=user)
        except NotPossibleError as error:
            form.add_error(None, str(error))
        else:
            if result.took is not Took.REFUSED:
                messages.success(request, "The item was added.")
                return redirect("queues:page", pk)
            form.add_error(None, result.why)
    return render(request, "queues/item_edit.html", {"form": form, "queue": queue, "key": uuid4().hex})


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def item(request: HttpRequest, pk: int) -> HttpResponse:
    """Show an item; people who may change it change it here until it has begun."""
    found = seen(ROWS, request, pk)
    if request.method == "POST":
        touched(Item.objects.all(), request, pk, Role.SEND)
    shown = _shown(pk)
    changeable = ItemState(shown["state"]) in OPEN and may_touch(found, request.user, Role.SEND)
    form = ItemForm(posted(request), queue=found.queue, initial=_initial(found)) if changeable else None
    if form is not None and form.is_valid():
        try:
            change(found, form.entry(found.own_id, item=found), by=user_of(request))
        except NotPossibleError as error:
            form.add_error(None, str(error))
        else:
            messages.success(request, "The item was changed.")
            return redirect("queues:item", pk)
    context = {"item": found, "queue": found.queue, "form": form, "shown": shown, "parts": _parts(found)}
    return render(request, "queues/item.html", context)


def _shown(pk: int) -> dict[str, Any]:
    rows = with_state(Item.objects.filter(pk=pk))
    names = ("state", "planned_for", "sent_at", "why", "reply")
    return dict(zip(names, rows.values_list(*names).get(), strict=True))


def _parts(found: Item) -> list[dict[str, str]]:
    parts = found.content.parts if found.content.parts is not None else found.target.run.parts
    return [{"text": part.get("text", ""), "file": part.get("filename", "")} for part in parts]


def _initial(found: Item) -> dict[str, object]:
    content = found.content
    text = (content.parts or [{}])[0].get("text", "")
    planned = found.planned_at.astimezone(zone_of(found.queue.zone)) if found.planned_at else None
    return {
        "address": found.recipient.address,
        "subject": content.subject,
        "text": text,
        "planned_at": planned.replace(tzinfo=None) if planned else None,
        "sender": str(found.account_id or ""),
        "priority": found.priority,
    }


@login_required
@require_POST
def item_withdraw(request: HttpRequest, pk: int) -> HttpResponse:
    found = touched(Item.objects.select_related("queue"), request, pk, Role.SEND)
    done = withdraw(found.queue, item_ids=[pk], by=user_of(request))
    if done.done:
        messages.success(request, "The item was withdrawn. It is not sent.")
    else:
        messages.error(request, "The item has begun or ended already, so it cannot be withdrawn.")
    return redirect("queues:item", pk)
