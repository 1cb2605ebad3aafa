"""The periodic tasks of reminders, as rows of django-celery-beat."""

from django.conf import settings

from delivery.periodic import plan


def plan_firing() -> None:
    plan(
        "Paceline's reminders",
        task="reminders.fire_due",
        description="Fires reminders that are due. Nothing is sent automatically without it.",
    )


def plan_approvals() -> None:
    plan(
        "Paceline's approvals",
        task="reminders.end_approvals",
        description="Ends requests for approval that nobody decided in time, and tells about them.",
        every=60,
    )


def plan_follow_ups() -> None:
    plan(
        "Paceline's follow-ups",
        task="reminders.follow_up",
        description="Queues, sends and counts follow-ups.",
        every=30,
    )
    plan(
        "Paceline's follow-up hygiene",
        task="reminders.clean_follow_ups",
        description="Drops follow-ups that must not be sent any more, each with its reason.",
        every=settings.FOLLOW_UP_HYGIENE_MINUTES * 60,
    )
