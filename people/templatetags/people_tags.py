from django import template
from django.conf import settings

from people import mails

register = template.Library()


@register.simple_tag
def mail_is_ready() -> bool:
    """Return whether mails with links can be sent."""
    return mails.is_ready()


@register.simple_tag
def oidc_name() -> str:
    """Return the name of the OpenID Connect provider; empty where there is none."""
    return settings.OIDC_NAME if settings.OIDC_ISSUER else ""
