"""Mails that a worker sends."""

from celery import shared_task
from django.core.mail import send_mail


@shared_task(name="people.send_mail")  # type: ignore[untyped-decorator]
def send(to: str, subject: str, text: str) -> None:
    """Send one mail. It is not tried again: the person asks for another link."""
    send_mail(subject, text, None, [to])
