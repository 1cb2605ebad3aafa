from django import template

from people import mails

register = template.Library()


@register.simple_tag
def mail_is_ready() -> bool:
    """Return whether mails with links can be sent."""
    return mails.is_ready()
