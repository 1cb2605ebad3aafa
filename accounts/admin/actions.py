"""Actions of staff on rows of the admin, from the list and from a row's page.

The buttons of a page post to the list's actions, so there is one way. Each action calls the function that the pages
and the commands call, and says why when it cannot be done.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import reverse

from accounts.admin.roles import allowed, changeable

if TYPE_CHECKING:
    _ModelAdmin = admin.ModelAdmin[Any]
else:
    _ModelAdmin = object

MOST_AT_ONCE = 100
MOST_REFUSALS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Button:
    """One of the list's actions, shown on a row's page."""

    action: str
    label: str
    gives_up: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """The question that a person confirms before an action. `form` asks for what the person has to add."""

    action: str
    title: str
    sentence: str
    button: str
    rows: Iterable[tuple[Model, str]]  # each with a note
    gives_up: bool = False
    phrase: str = ""  # to be typed
    mismatch: str = ""  # the error for another text
    form: forms.Form | None = None


class RowActions(_ModelAdmin):
    """The base of an admin with actions. A subclass defines `actions`, the buttons of a row, and the refusals."""

    change_form_template = "admin/row_actions.html"
    # The address of the list with this query leaves no row out.
    everything: ClassVar[str] = ""
    refusals: ClassVar[tuple[type[Exception], ...]] = (PermissionDenied,)

    def buttons(self, row: Any) -> Iterable[Button]:  # noqa: ARG002 - for those that have none
        return ()

    def render_change_form(
        self,
        request: HttpRequest,
        context: Any,
        add: bool = False,
        change: bool = False,
        form_url: str = "",
        obj: Any = None,
    ) -> HttpResponse:
        offered = list(self.buttons(obj)) if obj and allowed(changeable, obj, request) else []
        more = {"row_actions": offered, "row_actions_url": self._page("changelist") + self.everything}
        return super().render_change_form(request, context | more, add, change, form_url, obj)

    def each(
        self, request: HttpRequest, chosen: QuerySet[Any], action: Callable[..., object], done: str
    ) -> HttpResponse | None:
        """Apply the action to the rows one by one, and show the results."""
        changed, refused = 0, []
        for row in chosen[:MOST_AT_ONCE]:
            try:
                action(row, by=request.user)
                changed += 1
            except self.refusals as error:
                refused.append(str(error) if str(row) in str(error) else f"{row}: {error}")
        if changed:
            self.message_user(request, f"{done}: {changed:,}.", messages.SUCCESS)
        self.refuse(request, refused)
        if (rest := chosen.count() - MOST_AT_ONCE) > 0:
            self.message_user(request, f"Not done yet: {rest:,} more. Select them again.", messages.WARNING)
        return self.back(request)

    def refuse(self, request: HttpRequest, sentences: list[str]) -> None:
        for sentence in sentences[:MOST_REFUSALS]:
            self.message_user(request, sentence, messages.WARNING)
        if more := len(sentences[MOST_REFUSALS:]):
            self.message_user(request, f"{more:,} more were not changed.", messages.WARNING)

    def back(self, request: HttpRequest) -> HttpResponse | None:
        """Redirect to the row's page if its button was pressed; else return None, and Django shows the list."""
        page = request.POST.get("back_to", "")
        return redirect(self._page("change", page)) if page.isdigit() else None

    def ask(self, request: HttpRequest, question: Question) -> HttpResponse:
        page = request.POST.get("back_to", "")
        back_to = page if page.isdigit() else ""
        context = {
            **self.admin_site.each_context(request),
            "title": question.title,
            "opts": self.opts,
            "question": question,
            "rows": list(question.rows),
            "mistyped": "typed" in request.POST,
            "back_to": back_to,
            "back_url": self._page("change", back_to) if back_to else request.get_full_path(),
        }
        return TemplateResponse(request, "admin/confirm.html", context)

    def _page(self, name: str, *pk: str) -> str:
        return reverse(f"admin:{self.opts.app_label}_{self.opts.model_name}_{name}", args=pk)


def confirmed(request: HttpRequest) -> bool:
    return "confirmed" in request.POST
