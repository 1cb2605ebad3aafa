"""Runs: the list, one run, its targets, and what a person does to them."""

from django.db.models import Exists, OuterRef, QuerySet
from django.http import HttpRequest
from django.utils import timezone
from ninja import Path, Query, Router

from accounts.models import Role
from accounts.roles import visible
from api import leaving
from api.access import READ, STEER, person_of
from api.paging import page
from api.problems import refusal
from api.routes import handing_over, run_shapes
from api.routes.rows import seen, touched
from api.schemas.base import Id, Page
from api.schemas.runs import (
    Confirmation,
    HandOver,
    HandOverShown,
    RunDetail,
    RunsAsked,
    RunShown,
    TargetsAsked,
    TargetShown,
    TargetVerb,
    Verb,
)
from delivery.models import Run, RunAccount, RunTarget
from delivery.run_actions import ACTIONS, TARGET_ACTIONS, Question, do_each, perform

router = Router(tags=["Runs"])


def _rows() -> QuerySet[Run]:
    return Run.objects.defer("parts")


@router.get("", response=Page[RunShown], auth=READ)
def list_runs(request: HttpRequest, asked: Query[RunsAsked]) -> Page[RunShown]:
    """Return the runs, the newest first, each with when it goes on and why not sooner."""
    return page(_found(request, asked), asked, run_shapes.runs, newest_first=True)


@router.get("/{int:pk}", response=RunDetail, auth=READ)
def show_run(request: HttpRequest, pk: Path[Id]) -> RunDetail:
    """Return one run with its rate, its expected end and its accounts."""
    return run_shapes.detail(seen(Run.objects.all(), request, pk))


@router.get("/{int:pk}/targets", response=Page[TargetShown], auth=READ)
def list_targets(request: HttpRequest, pk: Path[Id], asked: Query[TargetsAsked]) -> Page[TargetShown]:
    """Return the run's targets by status and then by id.

    While a run goes on a target can change its status between two pages. Read them when the run is settled, or one
    status at a time.
    """
    run = seen(Run.objects.all(), request, pk)
    # Not joined: the planner would rather look through millions of targets than trust that each has a recipient.
    rows = RunTarget.objects.filter(run=run).prefetch_related("recipient")
    if asked.status is not None:
        rows = rows.filter(status=asked.status)
    goes_on = leaving.of_runs([run], now=timezone.now())[run.pk]
    return page(rows, asked, lambda found: run_shapes.targets(found, goes_on), by="status")


@router.get("/{int:pk}/targets/{int:target}", response=TargetShown, auth=READ)
def show_target(request: HttpRequest, pk: Path[Id], target: Path[Id]) -> TargetShown:
    """Return one target of a run."""
    run = seen(Run.objects.all(), request, pk)
    found = seen(RunTarget.objects.filter(run=run).select_related("recipient"), request, target)
    return run_shapes.targets([found], leaving.of_runs([run], now=timezone.now())[run.pk])[0]


@router.post("/{int:pk}/hand-over", response=HandOverShown, auth=STEER)
def hand_over_run(request: HttpRequest, pk: Path[Id], body: HandOver) -> HandOverShown:
    """Move what is left of a run to other accounts: new people, with `known` all people, and groups of the others.

    Without `confirmed` nothing moves, and the answer has both forecasts. What is being sent, unconfirmed or in doubt
    stays with its account.
    """
    run = touched(Run.objects.all(), request, pk, Role.SEND)
    return handing_over.answer([run], body, of=None, by=person_of(request))


@router.post("/{int:pk}/{verb}", response=RunDetail, auth=STEER)
def act_on_run(
    request: HttpRequest, pk: Path[Id], verb: Path[Verb], body: Confirmation | None = None
) -> RunDetail:
    """Pause, resume, cancel or retry a run, or archive it.

    `cancel` gives messages up, so it is confirmed: without `confirmed` the answer is 409 with the question, and with
    the text to type above 100 pending messages.
    """
    run = touched(_rows(), request, pk, Role.SEND)
    done = perform(ACTIONS[verb], [run], by=person_of(request), said=_said(body))
    if isinstance(done, Question):
        extra = {"phrase": done.phrase, "pending": done.pending}
        raise refusal(409, "confirmation-needed", f"{done.title} {done.sentence}", extra=extra)
    if done.refusals:
        raise refusal(409, "wrong-state", " ".join(done.refusals))
    return run_shapes.detail(Run.objects.get(pk=pk))


@router.post("/{int:pk}/targets/{int:target}/{verb}", response=TargetShown, auth=STEER)
def decide_target(
    request: HttpRequest, pk: Path[Id], target: Path[Id], verb: Path[TargetVerb]
) -> TargetShown:
    """Decide an unconfirmed message: `confirm` that it arrived, or `resend` it because it did not."""
    touched(_rows(), request, pk, Role.SEND)
    rows = RunTarget.objects.filter(run=pk).select_related("run", "recipient", "account")
    report = do_each(TARGET_ACTIONS[verb], [seen(rows, request, target)], by=person_of(request))
    if report.refusals:
        raise refusal(409, "wrong-state", " ".join(report.refusals))
    return show_target(request, pk, target)


def _said(body: Confirmation | None) -> dict[str, str]:
    """Return the confirmation as the form of a page sends it."""
    if body is None or not body.confirmed:
        return {}
    return {"confirmed": "yes", "typed": body.typed}


def _found(request: HttpRequest, asked: RunsAsked) -> QuerySet[Run]:
    rows = visible(_rows(), person_of(request)).filter(archived_at__isnull=not asked.archived)
    for name in ("status", "reminder", "kind"):
        if (value := getattr(asked, name)) is not None:
            rows = rows.filter(**{name: value})
    if asked.account is not None:
        rows = rows.filter(Exists(RunAccount.objects.filter(run=OuterRef("pk"), account=asked.account)))
    if asked.since is not None:
        rows = rows.filter(fired_at__gte=asked.since)
    if asked.until is not None:
        rows = rows.filter(fired_at__lt=asked.until)
    return rows
