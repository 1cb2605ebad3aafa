"""The buttons Approve and Refuse of a browser notification. Approving asks first, with the words that would leave."""

from collections.abc import Mapping
from typing import Any

from django.core import signing
from django.core.exceptions import PermissionDenied
from django.urls import reverse

from accounts.approvals.requests import DecidedError, address_of
from accounts.models import Approval, User
from activity.models import Notification
from reminders.approvals.deciding import approve, refuse, url_of
from reminders.models import Part

VERBS = ("approve", "refuse")
REASON = "Refused from a notification, without a reason."
WORDS = 160  # characters of the message


def offered(made: Notification, salt: str) -> Mapping[str, str]:
    """Return the addresses of the buttons, for a notification of a request that waits."""
    words = made.key.split(":")
    if words[0] != "approval" or words[-1] != "asked":
        return {}
    found = Approval.objects.waiting().filter(pk=int(words[1])).first()
    return {verb: _address(found, made.owner_id, verb, salt) for verb in VERBS} if found else {}


def act(said: Mapping[str, Any], user: User, salt: str) -> dict[str, Any]:
    """Do what the button says, or ask first; raise DecidedError or PermissionDenied."""
    found = Approval.objects.select_related("reminder").filter(pk=said["approval"]).first()
    if found is None:
        raise DecidedError("The request no longer exists.")
    if said["move"] == "refuse":
        refuse(found, content=said["content"], reason=REASON, by=user)
        return {"title": f"Refused: {found.title}", "body": "Nothing of it leaves.", "url": address_of(found)}
    if not said.get("confirmed"):
        return _question(found, user, salt)
    done = approve(found, content=said["content"], by=user)
    return {"title": f"Approved: {done.title}", "body": "It leaves at its time.", "url": url_of(done)}


REFUSALS = (DecidedError, PermissionDenied)


def _question(found: Approval, user: User, salt: str) -> dict[str, Any]:
    """Return what would leave, with a button that approves just that."""
    words = _first_words(found)
    return {
        "title": f"Approve {found.title}?",
        "body": f"{found.why} {words}".strip(),
        "url": address_of(found),
        "moves": {"approve": _address(found, user.pk, "approve", salt, confirmed=True)},
    }


def _first_words(found: Approval) -> str:
    if found.kind not in {Approval.Kind.REMINDER, Approval.Kind.SEND} or found.reminder is None:
        return ""
    texts = (
        found.reminder.parts.filter(role=Part.Role.FIRST).order_by("position").values_list("text", flat=True)
    )
    text = " ".join(" ".join(filter(None, texts)).split())
    return f"“{text[:WORDS]}{'…' if len(text) > WORDS else ''}”" if text else ""


def _address(found: Approval, user_id: int, verb: str, salt: str, *, confirmed: bool = False) -> str:
    said = {
        "approval": found.pk,
        "user": user_id,
        "move": verb,
        "content": found.content,
        "confirmed": confirmed,
    }
    return reverse("notifications:move", args=[signing.dumps(said, salt=salt)])
