"""The pages that change a person's e-mail."""

from allauth.account.decorators import reauthentication_required
from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from accounts.access import posted, user_of
from people import emails


class EmailForm(forms.Form):
    email = forms.EmailField(label="New e-mail", widget=forms.EmailInput(attrs={"autocomplete": "email"}))


@never_cache
@login_required
@reauthentication_required  # type: ignore[untyped-decorator]  # allauth has no types
@require_http_methods(["GET", "HEAD", "POST"])
def change(request: HttpRequest) -> HttpResponse:
    form = EmailForm(posted(request))
    if form.is_valid():
        try:
            emails.ask(user_of(request), form.cleaned_data["email"])
        except emails.EmailError as error:
            form.add_error(None, str(error))
        else:
            messages.success(request, "Open the link that we sent to the new address.")
            return redirect("people:me")
    return render(request, "people/email.html", {"form": form})


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def confirm(request: HttpRequest, token: str) -> HttpResponse:
    """Ask, then change it: a mail program that looks at links changes nothing."""
    if request.method == "POST":
        try:
            person = emails.confirm(token)
        except emails.EmailError as error:
            messages.error(request, str(error))
        else:
            messages.success(request, f"The e-mail of {person} is {person.email} now.")
        return redirect("people:me")
    person_and_new = emails.read(token)
    shown = {"person": person_and_new[0], "email": person_and_new[1]} if person_and_new else {}
    return render(request, "people/email_confirm.html", shown)
