"""Buttons for the actions on a run, in the words of `delivery/run_actions`, and the words of its pause."""

from datetime import datetime, timedelta
from math import ceil
from typing import Any

from django import template
from django.template import Context
from django.utils import timezone

from delivery.lifecycle import CANCELED
from delivery.models import Run, RunTarget
from delivery.pages.remedies import remedies_of
from delivery.run_actions import ACTIONS, Action
from delivery.sentences.reasons import PAUSES
from delivery.sentences.run_summary import canceled, counted
from delivery.states import RunStatus

register = template.Library()


@register.inclusion_tag("runs/_action_buttons.html", takes_context=True)
def action_buttons(context: Context, run: Run, *verbs: str) -> dict[str, Any]:
    """Show a button for each of the verbs that suits the run in its present state."""
    actions = [ACTIONS[verb] for verb in verbs]
    return {
        "run": run,
        "actions": [action for action in actions if action.suits(run)],
        "request": context["request"],
        "csrf_token": context.get("csrf_token"),
    }


@register.inclusion_tag("runs/_remedies.html", takes_context=True)
def remedies(context: Context, run: Run) -> dict[str, Any]:
    """Show the buttons that end the cause of a run's pause."""
    return {"remedies": remedies_of(run, context["user"]), "csrf_token": context.get("csrf_token")}


@register.filter
def expected_in_words(run: Run) -> str:
    """Return how many should get it, with their noun: 90 groups."""
    return counted(run, run.expected)


@register.filter
def undo_seconds(run: Run) -> int:
    """Return for how many seconds a run can still be taken back."""
    left = run.undo_until - timezone.now() if run.undo_until else timedelta()
    return max(0, ceil(left.total_seconds()))


@register.filter
def reason_of(target: RunTarget, run: Run) -> str:
    """Return why a target was not sent; of one that a person canceled, who did it and when."""
    return canceled(run) if target.error == CANCELED else target.error


@register.filter
def next_try(target: RunTarget, run: Run) -> datetime | None:
    """Return when a pending target can be tried at the earliest; None where no moment ahead is known."""
    if run.status == RunStatus.PAUSED:
        return None
    at = max(filter(None, (target.not_before, target.account.held_until)), default=None)
    return at if at is not None and at > timezone.now() else None


@register.filter
def pausing(reason: str) -> str:
    """Return why a run is paused, in a few words."""
    return PAUSES.get(reason, "")


@register.filter
def suits(action: Action[Run], run: Run) -> bool:
    """Decide whether the action is offered for the run in its present state."""
    return action.suits(run)
