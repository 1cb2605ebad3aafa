"""Verifies that a webhook is from the service and fresh. Everything here compares in constant time."""

import hashlib
import hmac
from datetime import datetime, timedelta
from typing import Any, Literal

from delivery.transports.base import WebhookRefusedError, WebhookRequest
from delivery.transports.http.reading import parsed


def require_signature(told: str, body: bytes, *, secret: str, algorithm: Literal["sha256", "sha512"]) -> None:
    """Require that `told` is the hex HMAC of the raw body; without a secret of ours every request is refused."""
    expected = hmac.new(secret.encode(), body, getattr(hashlib, algorithm)).hexdigest()
    if not told:
        raise WebhookRefusedError("The report is not signed.")
    if not secret or not same(told.lower(), expected):
        raise WebhookRefusedError("The signature is wrong.")


def require_fresh(made_at: datetime, received_at: datetime, *, within: timedelta) -> None:
    """Refuse an old or a future request, so that a recorded request cannot be sent again later."""
    if abs(received_at - made_at) > within:
        raise WebhookRefusedError("The report is too old, or from the future.")


def same(told: str, expected: str) -> bool:
    # As bytes: strings that are not ASCII cannot be compared, and half a character cannot be encoded.
    return hmac.compare_digest(told.encode(errors="replace"), expected.encode())


def report(request: WebhookRequest) -> dict[str, Any]:
    """Return the JSON object in the body of a verified request."""
    found = parsed(request.body)
    if not isinstance(found, dict):
        raise WebhookRefusedError("The report cannot be read.")
    return found
