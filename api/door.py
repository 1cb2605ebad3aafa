"""Does what every request needs before and after its route: key, limit, unknown parameters, idempotency, transaction.

1. Find the key (401), and count the request (429).
2. Refuse query parameters that the route does not know: a mistyped filter must not show everything.
3. A POST with an Idempotency-Key gets its stored answer, or is done once (`idempotency.py`).
4. The route runs in a savepoint: where it fails, nothing of it is kept.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.db import transaction
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils import timezone
from ninja.operation import Operation

from api import idempotency, rates
from api.access import Caller, find_caller
from api.problems import Fault, ProblemError, refusal
from api.rates import Allowance
from audit.origin import through_key

Run = Callable[..., HttpResponseBase]
View = Callable[..., Any]
SAFE = frozenset({"GET", "HEAD", "OPTIONS"})


def serve(run: Run) -> Run:
    """Wrap an operation of django-ninja, with its own check of scopes and values."""
    operation: Operation = run.__self__  # type: ignore[attr-defined]  # it is a bound method

    def answered(request: HttpRequest, **path: Any) -> HttpResponseBase:
        allowance: Allowance | None = None
        try:
            caller = find_caller(request)
            request.caller = caller  # type: ignore[attr-defined]  # read by `caller_of`
            allowance = rates.take(caller.key.pk, now=timezone.now())
            _refuse_too_many(allowance)
            _refuse_unknown(request, operation)
            with through_key(caller.person, f"{caller.key} (paceline_{caller.key.prefix}…)"):
                response = _once(request, caller, operation, lambda: run(request, **path))
        except ProblemError as error:
            response = error.problem.response()
        for name, value in (allowance.headers if allowance else {}).items():
            response.headers[name] = value
        return response

    return answered


def outside_transactions(view: View) -> View:
    """Mark a route that stores files, which may be kept over the network; it is safe to repeat."""
    view.outside = True  # type: ignore[attr-defined]
    return view


def whole(view: View) -> View:
    """Let a route that changes something do all of it or nothing."""

    @wraps(view)
    def changed(request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        if request.method in SAFE or hasattr(view, "outside"):
            return view(request, *args, **kwargs)
        with transaction.atomic():
            return view(request, *args, **kwargs)

    return changed


def _once(request: HttpRequest, caller: Caller, operation: Operation, work: Any) -> HttpResponseBase:
    name = idempotency.name_of(request) if request.method == "POST" else ""
    if not name:
        return work()  # type: ignore[no-any-return]  # a response
    do = idempotency.remember if hasattr(operation.view_func, "outside") else idempotency.once
    return do(caller.key, name, idempotency.fingerprint_of(request), work)


def _refuse_too_many(allowance: Allowance | None) -> None:
    if allowance is not None and allowance.exceeded:
        raise refusal(
            429,
            "too-many-requests",
            f"This key may make {allowance.limit:,} requests per minute. Wait {allowance.reset} s, then try again.",
            headers={"Retry-After": str(allowance.reset)},
        )


def _refuse_unknown(request: HttpRequest, operation: Operation) -> None:
    known = {
        name
        for model in operation.models
        if model.__ninja_param_source__ == "query"
        for name in model.__ninja_flatten_map__
    }
    strange = sorted(set(request.GET) - known)
    if strange:
        faults = [Fault(field=name, detail="There is no such parameter.") for name in strange]
        offered = ", ".join(sorted(known)) or "no parameters"
        raise refusal(
            422, "invalid", f"{', '.join(strange)}: not known here. Known: {offered}.", faults=faults
        )
