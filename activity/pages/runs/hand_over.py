"""The page that hands over the rest of one run."""

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from accounts.access import touched
from accounts.models import Role
from delivery.hand_over.move import refuse_ended
from delivery.lifecycle import WrongStateError
from delivery.models import Run
from delivery.pages.hand_over import Work, answer


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def hand_over(request: HttpRequest, pk: int) -> HttpResponse:
    run = touched(Run.objects.select_related("reminder", "owner"), request, pk, Role.SEND)
    back = reverse("runs:page", args=[run.pk])
    try:
        refuse_ended(run)
    except WrongStateError as error:
        messages.warning(request, str(error))
        return redirect(back)
    return answer(request, Work(runs=[run], name=f"the rest of {run.name}", back=back))
