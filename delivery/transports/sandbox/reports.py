"""Reads the sandbox's webhooks and checks their signature."""

import hmac
import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from delivery.transports.base import (
    AccountState,
    FirstContactsLocked,
    Inbound,
    InboundEvent,
    OwnLimits,
    Receipt,
    ReceiptState,
    SessionChanged,
    WebhookRefusedError,
    WebhookRequest,
)

FRESH = timedelta(minutes=5)  # clocks may differ, and the sandbox tries again for under a minute
STATES: Mapping[str, AccountState] = {
    "WORKING": AccountState.WORKING,
    "SCAN_QR_CODE": AccountState.PAIRING,
    "STOPPED": AccountState.STOPPED,
    "BANNED": AccountState.BLOCKED,
}


def reported(request: WebhookRequest) -> list[InboundEvent]:
    """Return the events in a request; raise WebhookRefusedError."""
    _check_signature(request)
    try:
        return _events(json.loads(request.body))
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError) as error:
        raise WebhookRefusedError("This is not a report of the sandbox.") from error


def _check_signature(request: WebhookRequest) -> None:
    """Require a valid signature. It covers the time, so a fresh time on an old report does not pass."""
    timestamp = request.headers.get("x-sandbox-timestamp", "")
    expected = hmac.new(request.secret.encode(), timestamp.encode() + b"." + request.body, "sha256")
    given = request.headers.get("x-sandbox-signature", "")
    if not hmac.compare_digest(f"sha256={expected.hexdigest()}".encode(), given.encode()):
        raise WebhookRefusedError("The signature is not the sandbox's.")
    if abs(request.received_at.timestamp() * 1000 - _ms(timestamp)) > FRESH.total_seconds() * 1000:
        raise WebhookRefusedError("The report is stale.")


def _events(report: Mapping[str, Any]) -> list[InboundEvent]:
    event_id, at = str(report["id"]), _moment(report["at"])
    message: Mapping[str, Any] = report.get("message", {})
    match report["event"]:
        case "message":
            return [
                Inbound(
                    event_id=event_id,
                    provider_id=str(message["id"]),
                    sender=str(message["from"]),
                    chat=str(message["chat"]),
                    text=str(message["text"]),
                    at=at,
                )
            ]
        case "receipt":
            state, provider_id = ReceiptState(report["state"]), str(message["id"])
            receipt_id = f"{provider_id}:{state}"
            why = str(report.get("reason") or "")[:200]
            return [Receipt(event_id=receipt_id, provider_id=provider_id, state=state, at=at, reason=why)]
        case "session":
            return [SessionChanged(event_id=event_id, state=STATES[report["state"]], at=at)]
        case "first_contacts_locked":
            return [FirstContactsLocked(event_id=event_id, at=at, until=_moment(report["until"]))]
        case _:
            return []


def told_limits(found: Mapping[str, Any]) -> OwnLimits:
    """Read the account's quota of new chats; a total of 0 is none."""
    total, until, locked = (_number(found.get(name)) for name in ("total", "until", "locked_until"))
    return OwnLimits(
        new_chats=total or None,
        new_chats_used=_number(found.get("used")),
        new_chats_until=_moment(until) if total and until else None,
        locked=locked > 0,
        locked_until=_moment(locked) if locked else None,
        said=dict(found),
    )


def _number(value: object) -> int:
    return value if isinstance(value, int) and value > 0 else 0


def _ms(text: str) -> int:
    return int(text) if text.isdecimal() else 0


def _moment(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)
