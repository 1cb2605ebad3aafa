"""The page with which superusers help people who cannot log in."""

from allauth.account.forms import default_token_generator
from allauth.account.utils import user_pk_to_url_str
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from accounts.access import user_of
from accounts.models import User
from audit.record import record
from people import second_factor
from people.adapters import reset_path


@never_cache
@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def recover(request: HttpRequest, pk: int) -> HttpResponse:
    """Make a link for a new password, which is shown once, or remove a lost second factor."""
    by = user_of(request)
    if not by.is_superuser:
        raise PermissionDenied("Only a superuser may help people to log in again.")
    person, link = get_object_or_404(User, pk=pk, is_active=True), ""
    match request.POST.get("do"):
        case "link":
            key = f"{user_pk_to_url_str(person)}-{default_token_generator.make_token(person)}"
            link = request.build_absolute_uri(reset_path(key))
            record("person.reset_link", person, by=by)
        case "factor":
            second_factor.reset(person, by=by)
            messages.success(
                request, f"{person} logs in without a second factor now, and is logged out everywhere."
            )
            return redirect("people:recover", pk)
    shown = {"person": person, "link": link, "second_factor": second_factor.has(person)}
    return render(request, "people/recover.html", shown)
