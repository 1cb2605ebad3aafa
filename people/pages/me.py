"""A person's own page: name, zone, country, ways to log in, and sessions."""

from typing import Any

from django.contrib import messages
from django.contrib.auth import logout
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from accounts.access import posted, user_of
from accounts.generics import ModelForm
from accounts.models import User
from accounts.zones import common_zones
from audit.record import record
from people import second_factor
from people.browsers import browser_of
from people.sessions import end_sessions, sessions_of


class AboutForm(ModelForm[User]):
    class Meta:
        model = User
        fields = ("first_name", "last_name", "zone", "region")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["zone"].widget.attrs |= {"list": "zones", "autocomplete": "off"}
        if not self.instance.zone:
            self.fields["zone"].widget.attrs["data-preset-zone"] = ""

    def clean_region(self) -> str:
        return str(self.cleaned_data["region"]).upper()


@never_cache
@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def me(request: HttpRequest) -> HttpResponse:
    person = User.objects.get(pk=user_of(request).pk)  # what is typed wrong must not show on the page
    form = AboutForm(posted(request), instance=person)
    if form.is_valid():
        person.save(update_fields=list(form.fields))
        messages.success(request, "Saved.")
        return redirect("people:me")
    shown: dict[str, object] = {
        "form": form,
        "zones": common_zones(),
        "second_factor": second_factor.has(user_of(request)),
        "required": second_factor.is_missing(user_of(request)),
        "sessions": [(each, browser_of(each.user_agent)) for each in sessions_of(user_of(request))],
    }
    return render(request, "people/me.html", shown)


@login_required
@require_POST
def log_out_everywhere(request: HttpRequest) -> HttpResponse:
    """End all sessions of the person, this one too."""
    person = user_of(request)
    ended = end_sessions(person)
    record("person.sessions_ended", person, by=person, after={"sessions": ended})
    logout(request)
    messages.success(request, "You are logged out everywhere.")
    return redirect("login")
