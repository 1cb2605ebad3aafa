"""The first step: the message."""

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from accounts.access import user_of
from accounts.models import User
from delivery.parts import values_of
from reminders import drafts
from reminders import message as writing
from reminders.audience import some_of
from reminders.drafts import NotPossibleError
from reminders.headcount import Texts, follow_ups_of, headcount, lacks
from reminders.models import Part, Reminder
from reminders.pages.editing import edited
from reminders.pages.wizard.message_form import MessageForm
from reminders.pages.wizard.steps import frame
from reminders.preview import preview

Role = Part.Role
CAPTIONS = {
    Role.FIRST: "Message",
    Role.SECOND: "Second message",
}


@login_required
@require_GET
def new(request: HttpRequest) -> HttpResponse:
    """Open the empty draft of the user. A second request opens the same draft, so GET is safe."""
    return redirect("reminders:message", drafts.begin(user_of(request)).pk)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def message(request: HttpRequest, pk: int) -> HttpResponse:
    reminder = edited(request, pk)
    if request.method != "POST":
        return _page(request, reminder, _saved_form(request, reminder))
    form = MessageForm(reminder, request.POST, request.FILES)
    if not form.is_valid():
        return _page(request, reminder, form)
    taken = form.take_files()
    verb, role, index = _asked(request.POST.get("do", ""))
    if verb in ("up", "down"):
        form.move(role, index, -1 if verb == "up" else 1)
    elif verb == "remove":
        form.remove(role, index)
    try:
        _save(form, name_it=verb in ("continue", "save"), by=user_of(request))
    except NotPossibleError as error:
        return _page(request, reminder, form, trouble=str(error))
    if not taken:
        return _page(request, reminder, form, status=413 if form.too_large else 200)
    return _onward(request, reminder, form, verb, role, index)


@login_required
@require_POST
def message_preview(request: HttpRequest, pk: int) -> HttpResponse:
    """Return the preview of the typed message, requested while typing; a draft is saved at the same time."""
    reminder = edited(request, pk)
    form = MessageForm(reminder, request.POST)
    draft, valid = reminder.status == Reminder.Status.DRAFT, form.is_valid()
    if draft and valid:
        _save(form, by=user_of(request))
    context = _preview(request, reminder, form) | {"saved": draft and valid, "unsaved": draft and not valid}
    return render(request, "reminders/wizard/_preview.html", context)


def _saved_form(request: HttpRequest, reminder: Reminder) -> MessageForm:
    return MessageForm(reminder, blank=request.GET.get("blank", ""), more=request.GET.get("more", ""))


def _save(form: MessageForm, *, by: User, name_it: bool = False) -> None:
    reminder = form.reminder
    typed = {role.value: form.typed(role) for role in Role}
    if name_it and not reminder.name and typed[Role.FIRST]:
        first = next(iter(some_of(reminder, 1)), None)
        values = values_of(first) if first else {}
        reminder.name = drafts.name_from(typed[Role.FIRST][0].text, values)
    writing.write(reminder, typed, by=by)


def _onward(
    request: HttpRequest, reminder: Reminder, form: MessageForm, verb: str, role: str, index: int
) -> HttpResponse:
    here = reverse("reminders:message", args=[reminder.pk])
    if verb == "continue" and (trouble := _trouble(form)):
        return _page(request, reminder, form, trouble=trouble)
    if verb == "continue":
        return redirect("reminders:recipients", reminder.pk)
    if verb == "save":
        messages.success(request, "Message saved.")
        return redirect("reminders:page", reminder.pk)
    if verb == "add":
        return redirect(f"{here}?blank={role}#{role}-last")
    if verb == "wording":
        return redirect(f"{here}?more={role}-{index}#{role}-{index}")
    return redirect(f"{here}#{role}" if verb in ("up", "down", "remove") else here)


def _trouble(form: MessageForm) -> str:
    """Return why the message cannot be left as it is; empty if it can."""
    first, second = form.typed(Role.FIRST), form.typed(Role.SECOND)
    if not first:
        return "Write a message first: a text, or a file."
    both = [*first, *second]
    return writing.wording_trouble(both) or writing.length_trouble(both, form.reminder)


def _asked(do: str) -> tuple[str, Role, int]:
    """Split `up-second-1` into a verb, a role and a place; unknown values become harmless defaults."""
    verb, _, rest = do.partition("-")
    role, _, index = rest.partition("-")
    return (
        verb,
        Role(role) if role in Role.values else Role.FIRST,
        int(index) if index.isascii() and index.isdigit() and len(index) < 4 else 0,
    )


def _page(
    request: HttpRequest, reminder: Reminder, form: MessageForm, *, trouble: str = "", status: int = 200
) -> HttpResponse:
    groups = [
        {
            "role": role.value,
            "caption": CAPTIONS[role],
            "parts": form.parts[role],
            "file_error": form.file_errors.get(role, ""),
            "full": len(form.parts[role]) >= writing.MOST_PARTS,
        }
        for role in Role
    ]
    context = frame(reminder, "message") | _preview(request, reminder, form)
    context |= {"form": form, "groups": groups, "trouble": trouble}
    return render(request, "reminders/wizard/message.html", context, status=status)


def _preview(request: HttpRequest, reminder: Reminder, form: MessageForm) -> dict[str, object]:
    form.is_valid()
    first, second = form.typed(Role.FIRST), form.typed(Role.SECOND)
    asked = request.POST.get("as") or request.GET.get("as", "")
    texts = Texts(
        first=[reminder.subject, *(text for part in first for text in part.wordings)],
        second=[text for part in second for text in part.wordings],
        follow_ups=follow_ups_of(reminder),
    )
    return {
        "reminder": reminder,
        "preview": preview(reminder, first, second, recipient_id=asked),
        "wording_trouble": writing.wording_trouble([*first, *second]),
        "lacking": lacks(headcount(reminder, texts=texts), texts),
    }
