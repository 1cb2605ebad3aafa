"""Receives webhooks: one address per account, with a part that cannot be guessed.

The account's transport checks the request on its raw body, its events are stored, and the request is answered; a
task does the work. An event that was stored before is not stored again, so a repeated request does nothing.
"""

from hmac import compare_digest
from uuid import UUID

import structlog
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods

from accounts.encryption import UnreadableSecretError
from accounts.models import Account
from delivery.inbound import refusals, store
from delivery.sessions import ask
from delivery.transports.base import NotOfferedError, Transport, Webhook, WebhookRefusedError, WebhookRequest

log = structlog.get_logger(__name__)


def webhook_of(account: Account) -> Webhook | None:
    """Return where the account's service has to report; None where PUBLIC_URL is not set."""
    if not settings.PUBLIC_URL:
        return None
    path = reverse("hook", args=[account.public_id, account.webhook["key"]])
    return Webhook(url=settings.PUBLIC_URL + path, secret=account.webhook["secret"])


def address_to_enter(webhook: Webhook, *, name: str) -> str:
    """Return the address for a person to enter at the service; with a name, it carries name and secret for us."""
    scheme, _, rest = webhook.url.partition("://")
    return f"{scheme}://{name}:{webhook.secret}@{rest}" if name else webhook.url


@csrf_exempt
@require_http_methods(["GET", "HEAD", "POST"])
def hook(request: HttpRequest, public_id: UUID, key: str) -> HttpResponse:
    account = _account(public_id, key)
    if account is None or request.method == "HEAD":  # some services try an address before they take it
        return _plain("", 200) if account else _plain("There is no such webhook.", 404)
    try:
        transport = ask.reader_of(account)
        if request.method == "GET":
            return _plain(transport.webhook_challenge(request.GET.dict(), account.webhook["secret"]), 200)
        return _take(request, account, transport)
    except NotOfferedError:
        return _plain("This account has no webhooks.", 404)
    except WebhookRefusedError as error:
        log.warning("webhook_refused", account=account.pk, reason=str(error))
        refusals.note(account, str(error))
        return _plain("Refused.", 403)
    except ask.NoAnswerError:
        log.exception("webhook_unreadable", account=account.pk)
        return _plain("Not now.", 503)


def _take(request: HttpRequest, account: Account, transport: Transport) -> HttpResponse:
    body = _body(request)
    if body is None:
        return _plain("Too large.", 413)
    report = WebhookRequest(
        headers={name.lower(): value for name, value in request.headers.items()},
        body=body,
        secret=account.webhook["secret"],
        received_at=timezone.now(),
    )
    try:
        events = transport.parse_webhook(report)
    except RecursionError as error:
        raise WebhookRefusedError("The report is nested too deeply.") from error
    store.store(account, events)
    return _plain("Taken.", 200)


def _body(request: HttpRequest) -> bytes | None:
    """Return the raw body; None where it is too large. Reads no more than is needed to know that."""
    most, declared = settings.WEBHOOK_MAX_BYTES, request.headers.get("Content-Length", "")
    if declared.isdecimal() and int(declared) > most:
        return None
    body = request.read(most + 1)
    return body if len(body) <= most else None


def _account(public_id: UUID, key: str) -> Account | None:
    """Return the account at this address, or None; a secret that cannot be read matches no request."""
    account = Account.objects.filter(public_id=public_id).first()
    try:
        known = account is not None and compare_digest(account.webhook["key"].encode(), key.encode())
    except UnreadableSecretError:
        log.exception("webhook_secret_unreadable", account=account and account.pk)
        return None
    return account if known else None


def _plain(text: str, status: int) -> HttpResponse:
    return HttpResponse(text, status=status, content_type="text/plain")
