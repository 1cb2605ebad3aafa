"""Sends a message to a mailbox, through the mail server of the installation."""

import smtplib
from email.utils import parseaddr
from uuid import UUID

from django.conf import settings
from django.core.mail import EmailMessage

from delivery.transports.networks.errors import Step, describe_connection_error
from notices.outside.ask import Reply
from notices.words import Text

NONE_SET = "this installation has no mail server"


def is_set() -> bool:
    """Return whether the installation can send mail at all."""
    return bool(settings.EMAIL_HOST)


def send(address: str, text: Text, *, message: UUID) -> Reply:
    """Send one mail. Sent again, it has the same id: most mail programs show it once."""
    if not is_set():
        return Reply(good=False, problem=NONE_SET)
    mail = EmailMessage(
        subject=" ".join(text.title.split()),
        body=text.body + _footer(),
        to=[address],
        headers={
            "Message-ID": f"<{message.hex}@{_domain()}>",
            "Auto-Submitted": "auto-generated",
        },
    )
    try:
        mail.send()
    except smtplib.SMTPRecipientsRefused:
        return Reply(good=False, problem="the mail server refuses this address")
    except smtplib.SMTPResponseException as error:
        return Reply(good=False, problem=f"the mail server answered {error.smtp_code}")
    except (OSError, smtplib.SMTPException) as error:
        found = describe_connection_error(error, settings.EMAIL_HOST, settings.EMAIL_PORT, Step.CONNECT)
        return Reply(good=False, problem=found)
    return Reply(good=True)


def _footer() -> str:
    site = settings.PUBLIC_URL
    return f"\n\nWhat arrives here, and when: {site}/notifications/settings/" if site else ""


def _domain() -> str:
    return parseaddr(settings.DEFAULT_FROM_EMAIL)[1].rpartition("@")[2] or "localhost"
