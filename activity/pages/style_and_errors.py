"""The style page, and the page for requests that were refused before any view."""

from django.conf import settings
from django.core.exceptions import RequestDataTooBig
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render

from activity.pages.showcase import showcase


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Return the page for a request that was refused before any view; one that is too large has its own page."""
    status = 413 if isinstance(exception, RequestDataTooBig) else 400
    return render(request, f"{status}.html", status=status)


def styleguide(request: HttpRequest) -> HttpResponse:
    """Show every component in every state, for people who build pages."""
    if not settings.DEBUG:
        raise Http404
    return render(request, "activity/styleguide.html", showcase())
