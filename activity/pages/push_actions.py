"""The buttons of a browser notification, which work without a page and without a login.

Each button has an address that does one thing, once, for one person. The address is signed, and valid for two days and
only while the run is as it was when the notification was made. An action that asks first answers with its question as a
second notification, which has a button to confirm. Where the name must be typed, it leads to the page that asks.
"""

from collections.abc import Mapping
from typing import Any

from django.core import signing
from django.http import HttpRequest, JsonResponse
from django.urls import reverse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from accounts.models import User
from activity.models import Notification
from activity.pages import push_approvals
from delivery.models import Run
from delivery.run_actions import ACTIONS, Question, perform
from delivery.states import RunStatus

# These must not change, nor the keys of the token and of the answer: browsers keep addresses and service workers of
# older versions.
SALT = "paceline.push.moves"
SECONDS = 2 * 24 * 3600
VERBS = ("resume", "cancel")
ASKS = (Notification.Kind.PAUSED, Notification.Kind.WAITING)  # those with buttons


class RefusedError(Exception):
    """The reason why a button no longer does anything, in words for its reader."""


def offered(made: Notification) -> Mapping[str, str]:
    """Return the addresses of the buttons by verb: for a run or a request that waits, and for nothing else."""
    if made.kind == Notification.Kind.APPROVAL:
        return push_approvals.offered(made, SALT)
    if made.kind not in ASKS or made.run is None:
        return {}
    return {verb: address(made.run, made.owner_id, verb) for verb in VERBS}


def address(run: Run, user_id: int, verb: str, *, confirmed: bool = False) -> str:
    """Return the address that does one action to a run in the name of a person."""
    said = {"run": run.pk, "user": user_id, "move": verb, "stands": _state(run), "confirmed": confirmed}
    return reverse("notifications:move", args=[signing.dumps(said, salt=SALT)])


# The token proves who asks. Cookies are not read, so no other page can misuse them.
@csrf_exempt
@require_POST
def act(_request: HttpRequest, token: str) -> JsonResponse:
    """Do the action of the token; return the notification that the service worker shows."""
    try:
        return JsonResponse(_act(token))
    except RefusedError as refusal:
        return JsonResponse({"title": "Nothing was changed", "body": str(refusal), "url": "/"}, status=409)


def _act(token: str) -> dict[str, Any]:
    try:
        said = signing.loads(token, salt=SALT, max_age=SECONDS)
    except signing.BadSignature:
        raise RefusedError("This button is too old. Open Paceline to continue.") from None
    user = User.objects.filter(pk=said["user"], is_active=True).first()
    if "approval" in said and user is not None:
        try:
            return push_approvals.act(said, user, SALT)
        except push_approvals.REFUSALS as refusal:
            raise RefusedError(str(refusal)) from refusal
    run = Run.objects.filter(pk=said.get("run")).first()
    if run is None or user is None:
        raise RefusedError("The run or your login no longer exists.")
    if run.shown_status != RunStatus.PAUSED or _state(run) != said["stands"]:
        raise RefusedError("The run has changed since then. Open it to see its state.")
    confirmation = {"confirmed": "1"} if said.get("confirmed") else {}
    found = perform(ACTIONS[said["move"]], [run], by=user, said=confirmation)
    if isinstance(found, Question):
        return _question(found, run, user)
    if not found.done:
        raise RefusedError(" ".join(found.refused))
    return {"title": run.name, "body": found.told, "url": f"/reminders/{run.reminder_id}/"}


def _question(question: Question, run: Run, user: User) -> dict[str, Any]:
    verb = question.action.verb
    asked = {
        "title": question.title,
        "body": question.sentence,
        "url": reverse(f"runs:{verb}", args=[run.pk]),
    }
    if question.phrase:
        return asked | {"body": f"{question.sentence} Tap to confirm."}
    return asked | {"moves": {"confirm": address(run, user.pk, verb, confirmed=True)}}


def _state(run: Run) -> str:
    return f"{run.status}:{run.pause_reason}:{run.sent}:{run.failed}:{run.skipped}:{run.unconfirmed}"
