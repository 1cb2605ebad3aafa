"""Resume and Cancel on a notification itself, where no page and no login is at hand.

Each button has an address that does one thing, once, for one person: signed, of use for two days, and only
while the run still stands as it stood when the notification was made.
"""

from collections.abc import Mapping

from django.core import signing
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, JsonResponse
from django.urls import reverse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from accounts.models import User
from activity.models import Notification
from delivery import lifecycle
from delivery.models import Run
from delivery.states import IllegalMoveError, RunStatus

SALT = "paceline.push.moves"
SECONDS = 2 * 24 * 3600

DONE = {"resume": "The reminder goes on.", "cancel": "The rest of the reminder was canceled."}


class RefusedError(Exception):
    """Why a button no longer does anything, in words for its reader."""


def offered(made: Notification) -> Mapping[str, str]:
    """The addresses of the buttons: for the news of a pause, and no other."""
    if made.kind != Notification.Kind.PAUSED or made.run is None:
        return {}
    return {move: address(made.run, made.owner_id, move) for move in DONE}


def address(run: Run, user_id: int, move: str) -> str:
    token = signing.dumps({"run": run.pk, "user": user_id, "move": move, "stands": _stands(run)}, salt=SALT)
    return reverse("notifications:move", args=[token])


# The token is what proves the request; cookies play no part in it, so that no other page can make use of them.
@csrf_exempt
@require_POST
def move(_request: HttpRequest, token: str) -> JsonResponse:
    """Do what the token says; the answer is what the service worker shows."""
    try:
        run, done = _act(token)
    except RefusedError as refusal:
        return JsonResponse({"title": "Nothing was changed", "body": str(refusal), "url": "/"}, status=409)
    return JsonResponse({"title": run.name, "body": done, "url": f"/reminders/{run.reminder_id}/"})


def _act(token: str) -> tuple[Run, str]:
    try:
        said = signing.loads(token, salt=SALT, max_age=SECONDS)
    except signing.BadSignature:
        raise RefusedError("This button is too old. Open Paceline to go on.") from None
    run = Run.objects.filter(pk=said["run"]).first()
    user = User.objects.filter(pk=said["user"], is_active=True).first()
    if run is None or user is None:
        raise RefusedError("The run, or your login, is no longer there.")
    if run.status != RunStatus.PAUSED or _stands(run) != said["stands"]:
        raise RefusedError("The run has moved on since. Open it to see how it stands.")
    verb = {"resume": lifecycle.resume, "cancel": lifecycle.cancel}[said["move"]]
    try:
        return verb(run, by=user), DONE[said["move"]]
    except (IllegalMoveError, PermissionDenied) as error:
        raise RefusedError(str(error)) from error


def _stands(run: Run) -> str:
    return f"{run.status}:{run.pause_reason}:{run.sent}:{run.failed}:{run.skipped}:{run.unconfirmed}"
