"""Mails to people about their own account. Links in them are made of PUBLIC_URL, never of what a request says."""

from smtplib import SMTPException

import structlog
from celery import current_app
from django.conf import settings
from django.core.mail import send_mail
from django.db import transaction
from django.template.loader import render_to_string
from django.urls import reverse

from people.team import Issued

log = structlog.get_logger(__name__)


def is_ready() -> bool:
    """Return whether mails with links can be sent: there is a mail server, and a public address."""
    return bool(settings.EMAIL_HOST and settings.PUBLIC_URL)


def send_invitation(issued: Issued) -> bool:
    """Send the invitation by mail; return whether the mail server took it."""
    if not is_ready():
        return False
    invitation = issued.invitation
    url = f"{settings.PUBLIC_URL}{reverse('people:join', args=[issued.token])}"
    text = render_to_string("people/mails/invitation.txt", {"invitation": invitation, "url": url})
    subject = f"{invitation.made_by} invites you to Paceline"
    try:
        send_mail(" ".join(subject.split()), text, None, [invitation.email])
    except (SMTPException, OSError):
        log.warning("invitation_not_mailed", invitation=invitation.pk, exc_info=True)
        return False
    return True


def send_later(*, to: str, subject: str, text: str) -> None:
    """Let a worker send the mail once the transaction is committed."""
    transaction.on_commit(lambda: current_app.send_task("people.send_mail", args=[to, subject, text]))
