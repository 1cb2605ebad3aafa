"""Shows the banner that says on every page that sending is stopped. It queries the database."""

from typing import Any

from django import template
from django.template import Context

from accounts.models import User
from delivery.recovery import stop_sending

register = template.Library()


@register.inclusion_tag("components/_sending.html", takes_context=True)
def sending_stops(context: Context) -> dict[str, Any]:
    user = context.get("user")
    return {"stops": stop_sending.stops_seen_by(user) if isinstance(user, User) else []}
