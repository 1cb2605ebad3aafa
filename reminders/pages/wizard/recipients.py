"""The second step: the accounts and the recipients.

Every button sends the whole form: accounts, tags and the ticks of the rows on the screen are saved first, then the
button does its work. So paging, searching and continuing lose nothing, with or without script.
"""

from urllib.parse import urlencode

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db.models import Case, Q, QuerySet, Value, When
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from accounts.access import user_of
from accounts.models import Account, Recipient
from accounts.models.recipient import RecipientQuerySet
from accounts.paging import page_of
from accounts.recipients.states import state_now
from reminders import audience
from reminders.drafts import ACTIONS, NotPossibleError
from reminders.headcount import account_ids, headcount, number_of
from reminders.models import Reminder
from reminders.pages.editing import edited
from reminders.pages.wizard import picker
from reminders.pages.wizard.steps import frame

MOST_ACCOUNTS = 100
SHOWS = ("all", "chosen", "excluded")


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def recipients(request: HttpRequest, pk: int) -> HttpResponse:
    reminder = edited(request, pk)
    if request.method != "POST":
        return _page(request, reminder, request.GET)
    asked = _Asked(request.POST)
    why_not = _why_not(reminder, asked)
    if why_not:  # nobody is chosen: the list that the fields now ask for is shown first
        asked.verb = "search" if asked.changed else "tick"
    try:
        _save(request, reminder, asked)
    except NotPossibleError as error:
        return _page(request, reminder, asked.address, trouble=str(error), accounts=asked.accounts)
    if why_not:
        return _page(request, reminder, asked.address, trouble_below=why_not, anew=True)
    return _onward(request, reminder, asked)


class _Asked:
    """The submitted form, parsed."""

    def __init__(self, data: QueryDict) -> None:
        self.verb, _, self.rest = data.get("do", "").partition("-")
        self.accounts = [int(pk) for pk in data.getlist("account") if _is_id(pk)]
        self.action = data.get("action", "")
        self.tags = data.getlist("tag")
        self.shown = {int(pk) for pk in data.getlist("shown") if _is_id(pk)}
        self.ticked = {int(pk) for pk in data.getlist("pick") if _is_id(pk)} & self.shown
        # The filters of the list on the screen, and how many rows they found: "all" means these rows.
        self.applied = picker.typed(data, "applied_")
        self.matching = data.get("matching", "")
        self.typed = picker.typed(data)
        # Not every filter has a field: one that leaves no choice has none.
        self.changed = any(name in data and self.typed[name] != self.applied[name] for name in picker.NAMES)
        self.show = data.get("show", "all")

    @property
    def address(self) -> dict[str, str]:
        """Return the query parameters of the list to show next."""
        place = {**self.applied, "show": self.show}
        match self.verb:
            case "search":
                place |= self.typed
            case "show":
                place["show"] = self.rest
            case "after" | "before":
                place[self.verb] = self.rest
            case "clear":
                place |= dict.fromkeys(picker.NAMES, "")
        return {name: value for name, value in place.items() if value and (name, value) != ("show", "all")}


def _why_not(reminder: Reminder, asked: _Asked) -> str:
    """Return why nobody is chosen or removed by a button for all; empty if the list on the screen is what it means."""
    if asked.verb not in {"all", "none"}:
        return ""
    if asked.changed:
        return "The filter was changed after this list was shown. Nothing was done: look at the new list, then choose."
    number = _matching(reminder, asked.applied, asked.show).count()
    if asked.matching != str(number):
        return (
            f"The list has changed: it has {number:,} now. Nothing was done: look at it, then choose again."
        )
    return ""


def _save(request: HttpRequest, reminder: Reminder, asked: _Asked) -> None:
    by = user_of(request)
    rows = Recipient.objects.filter(owner=reminder.owner_id)
    if asked.ticked:
        audience.choose(reminder, rows.filter(pk__in=asked.ticked), by=by)
    audience.choose_tags(reminder, asked.tags, by=by)
    if asked.shown - asked.ticked:
        audience.unchoose(reminder, rows.filter(pk__in=asked.shown - asked.ticked), by=by)
    if asked.verb == "all":
        added = audience.choose(reminder, _matching(reminder, asked.applied, asked.show), by=by)
        messages.success(request, f"{added:,} added.")
    elif asked.verb == "none":
        dropped = audience.unchoose(reminder, _matching(reminder, asked.applied, asked.show), by=by)
        messages.success(request, f"{dropped:,} removed.")
    possible = _accounts(reminder)
    by_id = {account.pk: account for account in possible.filter(pk__in=asked.accounts)}
    chosen = [by_id[pk] for pk in asked.accounts if pk in by_id]
    audience.choose_accounts(reminder, chosen, action=asked.action, by=by)


def _onward(request: HttpRequest, reminder: Reminder, asked: _Asked) -> HttpResponse:
    if asked.verb == "back":
        return redirect("reminders:message", reminder.pk)
    if asked.verb == "save":
        messages.success(request, "Recipients saved.")
        return redirect("reminders:page", reminder.pk)
    if asked.verb == "continue":
        return _continue(request, reminder, asked)
    here = reverse("reminders:recipients", args=[reminder.pk])
    return redirect(f"{here}?{urlencode(asked.address)}" if asked.address else here)


def _continue(request: HttpRequest, reminder: Reminder, asked: _Asked) -> HttpResponse:
    reminder.refresh_from_db()
    if not asked.accounts:
        return _page(request, reminder, asked.address, trouble="Choose an account to send from.")
    if not audience.some_of(reminder, 1):
        why = "Choose a tag, or at least one recipient who can be reached."
        return _page(request, reminder, asked.address, trouble_below=why)
    return redirect("reminders:when", reminder.pk)


def _page(
    request: HttpRequest,
    reminder: Reminder,
    address: "QueryDict | dict[str, str]",
    *,
    trouble: str = "",
    trouble_below: str = "",
    anew: bool = False,
    accounts: list[int] | None = None,
) -> HttpResponse:
    saved = account_ids(reminder)
    applied = picker.typed(address)
    show = address.get("show", "all")
    show = show if show in SHOWS else "all"
    rows = _listed(reminder, applied, show, saved)
    by_id = show == "excluded"
    page = page_of(rows, address, by="id" if by_id else "name", size=25)
    tags = audience.tags_of(reminder)
    reached = headcount(reminder, saved)
    offered = _offered(reminder, saved)
    context = frame(reminder, "recipients", reached) | {
        "accounts": offered,
        "filters": picker.filters_of(reminder, applied, tags, offered),
        "picked": saved if accounts is None else accounts,
        "actions": ACTIONS[reminder.channel],
        "tags": tags,
        "tagged": any(tag.chosen for tag in tags),  # type: ignore[attr-defined]  # annotated
        "audience": reached,
        "applied": applied,
        "filtered": any(applied.values()),
        "show": show,
        "page": page,
        "matching": _number(reminder, applied, show, anew=anew) if not by_id else 0,
        "named": audience.named_shown(reminder),
        "trouble": trouble,
        "trouble_below": trouble_below,
    }
    return render(request, "reminders/wizard/recipients.html", context)


def _number(reminder: Reminder, applied: dict[str, str], show: str, *, anew: bool) -> int:
    """Return how many rows "all" means. Search results are counted each time: an index finds them."""
    found = _matching(reminder, applied, show)
    if applied["q"]:
        return found.count()
    said = ":".join(applied[name] for name in picker.NAMES)
    name = f"{reminder.pk}:{show}:{said}:{reminder.updated_at.timestamp()}"
    return number_of(found, name, anew=anew)


def _matching(reminder: Reminder, applied: dict[str, str], show: str) -> RecipientQuerySet:
    return audience.found(reminder, picker.wanted(applied, chosen=show == "chosen"))


def _listed(reminder: Reminder, applied: dict[str, str], show: str, accounts: list[int]) -> RecipientQuerySet:
    if show == "excluded":
        return audience.excluded(reminder, accounts)
    reached = Q(account__isnull=True) | Q(account__in=accounts)
    elsewhere = Case(When(reached, then=Value(False)), default=Value(True))
    rows = _matching(reminder, applied, show).annotate(state=state_now(), elsewhere=elsewhere)
    return rows.select_related("account").defer("account__credentials").prefetch_related("tags")


def _accounts(reminder: Reminder) -> "QuerySet[Account]":
    return Account.objects.filter(owner=reminder.owner_id, archived_at=None).defer("credentials")


def _offered(reminder: Reminder, saved: list[int]) -> list[Account]:
    """Return the accounts to choose from: the chosen ones first, then the others by channel and name."""
    rows = _accounts(reminder)
    chosen = {account.pk: account for account in rows.filter(pk__in=saved)}
    others = rows.exclude(pk__in=saved).order_by("channel", "name", "id")[:MOST_ACCOUNTS]
    return [*(chosen[pk] for pk in saved if pk in chosen), *others]


def _is_id(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 19
