"""The page of a person's own API keys: make one, see when each was used, revoke one."""

from allauth.account.internal.flows.reauthentication import raise_if_reauthentication_required
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from accounts.access import posted, user_of
from accounts.paging import page_of
from api import keys
from api.keys import BadKeyError, Issued
from api.models import ApiKey
from api.pages.key_form import KeyForm
from api.scopes import Scope


@never_cache
@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def key_list(request: HttpRequest) -> HttpResponse:
    """Show the keys. A new key is shown in the answer to its form, and never again: it is stored nowhere.

    Before a key is made, the password or the second factor is asked for again: a key outlives the session. Somebody who
    has neither, because a provider logs them in, is not asked.
    """
    form, issued = KeyForm(posted(request)), None
    if form.is_valid():
        raise_if_reauthentication_required(request, app="account")
        issued = _issue(request, form)
    page = page_of(ApiKey.objects.filter(person=user_of(request)), request.GET, newest_first=True)
    now = timezone.now()
    context = {
        "form": KeyForm() if issued else form,
        "issued": issued,
        "page": page,
        "rows": [(key, keys.works(key, now)) for key in page.rows],
    }
    return render(request, "api/keys.html", context)


@never_cache
@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def revoke(request: HttpRequest, pk: int) -> HttpResponse:
    """Ask, then end a key of one's own at once."""
    key = get_object_or_404(ApiKey, pk=pk, person=user_of(request))
    if request.method == "POST":
        keys.revoke(key, by=user_of(request))
        messages.success(request, f"The key “{key}” was revoked. It no longer works.")
        return redirect("api_keys:list")
    return render(request, "api/key_revoke.html", {"key": key, "back": reverse("api_keys:list")})


def _issue(request: HttpRequest, form: KeyForm) -> Issued | None:
    given = form.cleaned_data
    scopes = [Scope(scope) for scope in given["scopes"]]
    try:
        return keys.issue(user_of(request), name=given["name"], scopes=scopes, ends_at=given.get("ends_at"))
    except BadKeyError as error:
        form.add_error("name", str(error))
        return None
