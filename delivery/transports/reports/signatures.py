"""Is a webhook the service's own word, and of now? Everything here compares in constant time."""

import hashlib
import hmac
from datetime import datetime, timedelta
from typing import Any, Literal

from delivery.transports.base import WebhookRefusedError, WebhookRequest
from delivery.transports.http.reading import parsed


def require_signature(told: str, body: bytes, *, secret: str, algorithm: Literal["sha256", "sha512"]) -> None:
    """`told` must be the hex HMAC of the raw body; without a secret of ours nothing is believed."""
    expected = hmac.new(secret.encode(), body, getattr(hashlib, algorithm)).hexdigest()
    if not secret or not same(told.lower(), expected):
        raise WebhookRefusedError("The signature is missing or wrong.")


def require_fresh(made_at: datetime, received_at: datetime, *, within: timedelta) -> None:
    """Somebody who recorded a request must not send it again next week, nor prepare one for then."""
    if abs(received_at - made_at) > within:
        raise WebhookRefusedError("The report is too old, or from the future.")


def same(told: str, expected: str) -> bool:
    # As bytes: strings that are not ASCII cannot be compared, and half a character cannot be encoded.
    return hmac.compare_digest(told.encode(errors="replace"), expected.encode())


def report(request: WebhookRequest) -> dict[str, Any]:
    """The JSON object in the body, once it is known whose it is."""
    found = parsed(request.body)
    if not isinstance(found, dict):
        raise WebhookRefusedError("The report cannot be read.")
    return found
