"""The link by which a recipient opts out of everything that one operator sends on one channel.

Mail programs send a POST to it by themselves when somebody presses their own "Unsubscribe" (RFC 8058): without login,
cookie or CSRF token, so the signature in the address is the only proof. A GET changes nothing, since scanners open
every link of a message.

A link works for ever: after the recipient got another address, was deleted or was imported again, and after the keys
were changed, as long as the old ones are kept as fallbacks.
"""

from collections.abc import Callable
from dataclasses import dataclass

from django.conf import settings
from django.core import signing
from django.db import transaction
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods

from accounts.models import Account, Recipient, User
from accounts.models.account import Channel
from accounts.recipients.consent import opt_out, suppress

SALT = "accounts.unsubscribe"
FOLLOWED = "Followed the unsubscribe link."


@dataclass(frozen=True, slots=True, kw_only=True)
class Links:
    """Makes the links for the messages of one operator on one channel."""

    owner_id: int
    channel: str

    def to(self, address: str, target_id: int | None = None) -> str:
        """Return the link for one message, or an empty string when PUBLIC_URL is not set.

        The link names the address as it is now, and the target, which still leads to its recipient when the address
        changes.
        """
        if not settings.PUBLIC_URL:
            return ""
        token = _signer().sign_object([self.owner_id, self.channel, address, target_id])
        return settings.PUBLIC_URL + reverse("unsubscribe", args=[token])


@dataclass(frozen=True, slots=True, kw_only=True)
class Followed:
    """A link that was opened, with the contents of its token."""

    owner_id: int
    channel: str
    address: str
    target_id: int | None = None

    def opt_out(self) -> None:
        """Opt out the address that the message went to, and its recipient, who may have another address now."""
        with transaction.atomic():
            suppress(self.owner_id, self.channel, self.address, how=FOLLOWED)
            for recipient in self._recipients():
                opt_out(recipient, how=FOLLOWED)

    @property
    def is_out(self) -> bool:
        """Return whether nothing more is sent to them."""
        if not User.objects.filter(pk=self.owner_id).exists():
            return True
        found = list(self._at_address()) + list(self._recipients())
        return bool(found) and all(recipient.opted_out_at for recipient in found)

    def _at_address(self) -> QuerySet[Recipient]:
        return Recipient.objects.filter(owner=self.owner_id, channel=self.channel, address=self.address)

    def _recipients(self) -> QuerySet[Recipient]:
        """Return the recipients of the message, or none when they were deleted or belong to another owner now."""
        return Recipient.objects.filter(
            owner=self.owner_id,
            channel=self.channel,
            targets__id__in=[self.target_id] if self.target_id else [],
        )


def links_from(account: Account) -> Callable[[str, int | None], str] | None:
    """Return the function that makes the link for each message, or None when the channel has no links."""
    if account.channel != Channel.EMAIL:
        return None
    return Links(owner_id=account.owner_id, channel=account.channel).to


@csrf_exempt
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def unsubscribe(request: HttpRequest, token: str) -> HttpResponse:
    followed = _read(token)
    if request.method == "POST":
        followed.opt_out()
    # Show the address that the message went to: its reader need not know a later one.
    context = {"address": followed.address, "is_out": request.method == "POST" or followed.is_out}
    response = render(request, "accounts/unsubscribe.html", context)
    response["X-Robots-Tag"] = "noindex"
    return response


def _signer() -> signing.Signer:
    """Return a signer that signs with the first key and accepts links signed with any of the keys."""
    keys: list[str | bytes] = [
        *settings.UNSUBSCRIBE_KEYS,
        settings.SECRET_KEY,
        *settings.SECRET_KEY_FALLBACKS,
    ]
    # Dots instead of colons: nothing in the address needs escaping.
    return signing.Signer(key=keys[0], sep=".", salt=SALT, fallback_keys=keys[1:])


def _read(token: str) -> Followed:
    """Return the contents of a token. Links of earlier versions name no target."""
    try:
        said = _signer().unsign_object(token)
    except (signing.BadSignature, ValueError) as error:
        raise Http404 from error
    match said:
        case [int(owner_id), str(channel), str(address)]:
            return Followed(owner_id=owner_id, channel=channel, address=address)
        case [int(owner_id), str(channel), str(address), int() | None as target_id]:
            return Followed(owner_id=owner_id, channel=channel, address=address, target_id=target_id)
    raise Http404
