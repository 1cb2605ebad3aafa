"""Buttons for the actions on a run, in the words of `delivery/run_actions`, and the words of its pause."""

from typing import Any

from django import template
from django.template import Context

from delivery.models import Run
from delivery.run_actions import ACTIONS, Action
from delivery.sentences.reasons import PAUSES

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


@register.filter
def pausing(reason: str) -> str:
    """Return why a run is paused, in a few words."""
    return PAUSES.get(reason, "")


@register.filter
def suits(action: Action[Run], run: Run) -> bool:
    """Decide whether the action is offered for the run in its present state."""
    return action.suits(run)
