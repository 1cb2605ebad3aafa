"""The style page, and what is shown when a request went wrong."""

from django.conf import settings
from django.core.exceptions import RequestDataTooBig
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render

from activity.pages.showcase import showcase


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """A request that was refused before any view saw it; too large is a case of its own."""
    status = 413 if isinstance(exception, RequestDataTooBig) else 400
    return render(request, f"{status}.html", status=status)


def styleguide(request: HttpRequest) -> HttpResponse:
    """Every component in every state, for those who build pages."""
    if not settings.DEBUG:
        raise Http404
    return render(request, "activity/styleguide.html", showcase())
