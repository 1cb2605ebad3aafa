"""The bell of the header. It queries the database, which the components of `paceline` never do."""

from typing import Any

from django import template
from django.template import Context

from accounts.models import User
from activity.live.messages import MOST_UNREAD, unread

register = template.Library()


@register.inclusion_tag("components/_bell.html", takes_context=True)
def bell(context: Context) -> dict[str, Any]:
    user = context.get("user")
    count = unread(user) if isinstance(user, User) else 0
    return {"unread": count, "shown": count if count <= MOST_UNREAD else f"{MOST_UNREAD}+"}
