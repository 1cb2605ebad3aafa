"""The link by which a recipient opts out of everything that one operator sends on one channel.

Mail programs follow it by themselves with a POST when somebody presses their own "Unsubscribe" (RFC 8058): without
login, cookie or CSRF token, so the signature in the address is all the proof there is. A GET changes nothing, since
scanners open every link of a message.
"""

from collections.abc import Callable
from dataclasses import dataclass

from django.conf import settings
from django.core import signing
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods

from accounts.consent import opt_out
from accounts.models import Account, Recipient
from accounts.models.account import Channel

# Dots instead of colons: nothing in the address needs escaping.
_signer = signing.Signer(salt="accounts.unsubscribe", sep=".")


@dataclass(frozen=True, slots=True, kw_only=True)
class Links:
    """Makes the links for what one operator sends on one channel."""

    owner_id: int
    channel: str

    def to(self, address: str) -> str:
        """The link for one recipient; empty where PUBLIC_URL does not say where we are found."""
        if not settings.PUBLIC_URL:
            return ""
        token = _signer.sign_object([self.owner_id, self.channel, address])
        return settings.PUBLIC_URL + reverse("unsubscribe", args=[token])


def links_from(account: Account) -> Callable[[str], str] | None:
    """What makes the link for each address that the account writes to; None where the channel has none."""
    if account.channel != Channel.EMAIL:
        return None
    return Links(owner_id=account.owner_id, channel=account.channel).to


@csrf_exempt
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def unsubscribe(request: HttpRequest, token: str) -> HttpResponse:
    recipient = _recipient(token)
    if request.method == "POST":
        opt_out(recipient, how="Followed the unsubscribe link.")
    response = render(request, "accounts/unsubscribe.html", {"recipient": recipient})
    response["X-Robots-Tag"] = "noindex"
    return response


def _recipient(token: str) -> Recipient:
    try:
        owner_id, channel, address = _signer.unsign_object(token)
    except (signing.BadSignature, ValueError) as error:
        raise Http404 from error
    recipient = Recipient.objects.filter(owner_id=owner_id, channel=channel, address=address).first()
    if recipient is None:
        raise Http404
    return recipient
