"""Turns the refusals of the actions into problems. The sentences are those that a person reads on the pages."""

from collections.abc import Callable, Mapping
from typing import Any

import structlog
from django.core.exceptions import PermissionDenied, RequestDataTooBig, SuspiciousOperation, ValidationError
from django.db import OperationalError
from django.http import Http404, HttpRequest, HttpResponse
from ninja import NinjaAPI
from ninja.errors import HttpError
from ninja.errors import ValidationError as BadValuesError
from redis.exceptions import RedisError

from accounts.addresses import BadAddressError
from accounts.recipients.tags import TagError
from api.hooks.manage import BadWebhookError
from api.problems import Fault, ProblemError, invalid, of_status, refusal
from delivery.fanout import NothingToSendError
from delivery.states import IllegalMoveError
from reminders.by_hand.content import ChangedError
from reminders.drafts import NotPossibleError
from reminders.fire import BusyError
from reminders.readiness import NotReadyError
from reminders.uploads import TooLargeError

log = structlog.get_logger(__name__)

MOST_FAULTS = 100
Handler = Callable[[HttpRequest, Any], HttpResponse]


def _wrong_state(error: Exception) -> ProblemError:
    return refusal(409, "wrong-state", str(error))


def _not_ready(error: NotReadyError) -> ProblemError:
    faults = [Fault(field=problem.step.value, detail=problem.sentence) for problem in error.problems]
    return refusal(422, "not-ready", " ".join(problem.sentence for problem in error.problems), faults=faults)


def _bad_values(error: BadValuesError) -> ProblemError:
    faults = [_fault(found) for found in error.errors[:MOST_FAULTS]]
    detail = "; ".join(f"{fault.field}: {fault.detail}" for fault in faults[:5])
    return refusal(422, "invalid", f"{detail}.".replace("..", "."), faults=faults)


def _fault(found: Mapping[str, Any]) -> Fault:
    """Return one fault of pydantic, without the place (body, query) and the parameter's own name before it."""
    place = [str(step) for step in found.get("loc", ())]
    names = place[2:] if place[:1] == ["body"] else place[1:]
    said = str(found.get("msg", "not valid")).removeprefix("Value error, ")
    return Fault(field=".".join(names) or "body", detail=said)


def _django_values(error: ValidationError) -> ProblemError:
    if isinstance(error, TooLargeError):
        return refusal(413, "too-large", " ".join(error.messages))
    if hasattr(error, "error_dict"):
        faults = [
            Fault(field=name, detail=said) for name, each in error.message_dict.items() for said in each
        ]
        return refusal(422, "invalid", " ".join(fault.detail for fault in faults), faults=faults)
    return refusal(422, "invalid", " ".join(error.messages))


def _http_error(error: HttpError) -> ProblemError:
    """Return the problem that our parser raised, which django-ninja hides behind an error of its own."""
    cause = error.__cause__
    return cause if isinstance(cause, ProblemError) else ProblemError(of_status(error.status_code))


def _starting(error: BusyError) -> ProblemError:
    """Return a refusal that is not kept for an Idempotency-Key: the same request works in a few seconds."""
    return refusal(503, "busy", str(error), headers={"Retry-After": "5"})


def _busy(error: OperationalError | RedisError) -> ProblemError:
    log.warning("api_server_away", error=type(error).__name__)
    return refusal(503, "busy", of_status(503).detail, headers={"Retry-After": "5"})


TOLD: Mapping[type[Exception], Callable[[Any], ProblemError]] = {
    ProblemError: lambda error: error,
    BadValuesError: _bad_values,
    HttpError: _http_error,
    Http404: lambda _: refusal(404, "not-found", "There is no such row, or the key's person may not see it."),
    PermissionDenied: lambda error: refusal(403, "not-allowed", str(error) or "You may not do this."),
    SuspiciousOperation: lambda _: ProblemError(of_status(400)),
    RequestDataTooBig: lambda _: ProblemError(of_status(413)),
    BusyError: _starting,
    ChangedError: lambda error: refusal(409, "changed", str(error)),
    IllegalMoveError: _wrong_state,
    NotPossibleError: _wrong_state,
    NothingToSendError: _wrong_state,
    NotReadyError: _not_ready,
    BadWebhookError: lambda error: invalid(error.field, str(error)),
    TagError: lambda error: invalid("tags", str(error)),
    BadAddressError: lambda error: invalid("address", str(error)),
    ValidationError: _django_values,
    OperationalError: _busy,
    RedisError: _busy,
}


def handle_in(api: NinjaAPI) -> None:
    """Let the API answer every known error with its problem; others are logged by Django and answered with 500."""
    for error, told in TOLD.items():
        api.add_exception_handler(error, _handler(told))


def _handler(told: Callable[[Any], ProblemError]) -> Handler:
    return lambda _request, error: told(error).problem.response()
