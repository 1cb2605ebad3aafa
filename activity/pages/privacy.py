"""The pages about one person's data: everything as a file, and erasure."""

import json

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.serializers.json import DjangoJSONEncoder
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from accounts.access import seen, touched, user_of
from accounts.models import Recipient, Role
from activity.privacy.erase import NotErasableError, erase, why_not
from activity.privacy.export import export


@login_required
@require_safe
def download(request: HttpRequest, pk: int) -> HttpResponse:
    found = export(seen(Recipient.objects.all(), request, pk), by=user_of(request))
    text = json.dumps(found, cls=DjangoJSONEncoder, indent=2, ensure_ascii=False)
    response = HttpResponse(text, content_type="application/json; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="recipient-{pk}.json"'
    response["X-Content-Type-Options"] = "nosniff"
    return response


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def erasure(request: HttpRequest, pk: int) -> HttpResponse:
    """Ask first: it cannot be undone."""
    recipient = touched(Recipient.objects.all(), request, pk, Role.MANAGE)
    typed = request.POST.get("typed", "").strip()
    wrong = request.method == "POST" and typed.casefold() != str(recipient).strip().casefold()
    if request.method != "POST" or wrong:
        context = {"recipient": recipient, "why_not": why_not(recipient), "wrong": wrong}
        return render(request, "activity/erase.html", context)
    try:
        erase(recipient, by=user_of(request))
    except NotErasableError as error:
        messages.error(request, str(error))
    else:
        messages.success(
            request, "Everything about this person was erased. Nothing is sent to the address any more."
        )
    return redirect("recipients:recipient", pk)
