"""The pages of webhooks: the list with a form to add one, and one webhook with its log."""

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from accounts.access import posted, seen, touched, user_of
from accounts.models import Delivery, Role, Webhook
from accounts.models.webhook import EventType
from accounts.paging import page_of
from accounts.roles import may_touch, require_touch, visible
from api.hooks import manage
from api.hooks.manage import BadWebhookError, Made
from api.pages.webhook_form import WebhookForm

PER_PAGE = 25


@never_cache
@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def webhook_list(request: HttpRequest) -> HttpResponse:
    """Show the webhooks. The secret of a new one is shown in the answer to its form."""
    form, made = WebhookForm(posted(request), initial={"events": EventType.values}), None
    if form.is_valid():
        made = _make(request, form)
    rows = visible(Webhook.objects.defer("secrets").select_related("owner"), user_of(request))
    context = {
        "form": WebhookForm(initial={"events": EventType.values}) if made else form,
        "made": made,
        "page": page_of(rows, request.GET, newest_first=True),
    }
    return render(request, "api/webhooks.html", context)


@never_cache
@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def webhook_page(request: HttpRequest, pk: int) -> HttpResponse:
    """Show one webhook with its log, or save its address and events."""
    webhook = seen(Webhook.objects.select_related("owner"), request, pk)
    if request.method == "POST":
        require_touch(webhook, by := user_of(request), Role.MANAGE)
    form = WebhookForm(posted(request), initial={"url": webhook.url, "events": webhook.events})
    if form.is_valid():
        try:
            manage.change(webhook, url=form.cleaned_data["url"], events=form.chosen, by=by)
        except BadWebhookError as error:
            form.blame(error)
        else:
            messages.success(request, "Webhook saved.")
            return redirect("webhooks:page", pk)
    return _page(request, webhook, form)


@never_cache
@login_required
@require_POST
def act(request: HttpRequest, pk: int, verb: str) -> HttpResponse:
    """Send a test, change the secret, or switch the webhook on or off."""
    webhook, by = touched(Webhook.objects.select_related("owner"), request, pk, Role.MANAGE), user_of(request)
    try:
        match verb:
            case "test":
                manage.send_test(webhook, by=by)
                messages.success(request, "A test is on its way. Its answer appears in the log.")
            case "rotate":
                form = WebhookForm(initial={"url": webhook.url, "events": webhook.events})
                return _page(request, webhook, form, made=manage.rotate(webhook, by=by))
            case "on":
                manage.switch_on(webhook, by=by)
                messages.success(request, "Switched on. Events are told from now on.")
            case "off":
                manage.switch_off(webhook, by=by)
                messages.success(request, "Switched off. Nothing more is told to this address.")
            case _:
                raise Http404
    except BadWebhookError as error:
        messages.error(request, str(error))
    return redirect("webhooks:page", pk)


@never_cache
@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def delete(request: HttpRequest, pk: int) -> HttpResponse:
    """Ask, then delete a webhook with its log."""
    webhook = touched(Webhook.objects.select_related("owner"), request, pk, Role.MANAGE)
    if request.method == "POST":
        manage.delete(webhook, by=user_of(request))
        messages.success(request, "Webhook deleted, with its log.")
        return redirect("webhooks:list")
    context = {"webhook": webhook, "back": reverse("webhooks:page", args=[pk])}
    return render(request, "api/webhook_delete.html", context)


@login_required
@require_POST
def replay(request: HttpRequest, pk: int, delivery: int) -> HttpResponse:
    """Deliver one event again."""
    webhook = touched(Webhook.objects.all(), request, pk, Role.MANAGE)
    found = seen(Delivery.objects.filter(webhook=webhook).select_related("webhook"), request, delivery)
    try:
        manage.replay(found, by=user_of(request))
    except BadWebhookError as error:
        messages.error(request, str(error))
    else:
        messages.success(request, "The event is delivered again.")
    return redirect("webhooks:page", pk)


def _make(request: HttpRequest, form: WebhookForm) -> Made | None:
    try:
        person = user_of(request)
        return manage.make(person, url=form.cleaned_data["url"], events=form.chosen, by=person)
    except BadWebhookError as error:
        form.blame(error)
        return None


def _page(
    request: HttpRequest, webhook: Webhook, form: WebhookForm, *, made: Made | None = None
) -> HttpResponse:
    log = page_of(Delivery.objects.filter(webhook=webhook), request.GET, newest_first=True, size=PER_PAGE)
    context = {
        "webhook": webhook,
        "form": form,
        "made": made,
        "page": log,
        "may_touch": may_touch(webhook, request.user, Role.MANAGE),
        "resting": webhook.retry_at is not None and webhook.retry_at > timezone.now(),
    }
    return render(request, "api/webhook.html", context)
