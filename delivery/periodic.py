"""The system's own periodic jobs, as rows of django-celery-beat."""

from django.conf import settings
from django_celery_beat.models import IntervalSchedule, PeriodicTask


def plan_tick() -> None:
    """The tick, as often as the settings say."""
    every, _ = IntervalSchedule.objects.get_or_create(
        every=settings.TICK_SECONDS, period=IntervalSchedule.SECONDS
    )
    PeriodicTask.objects.update_or_create(
        name="Paceline's tick",
        defaults={
            "task": "delivery.tick",
            "interval": every,
            "expire_seconds": 10,
            "description": "Opens and closes windows, wakes accounts. Paceline stands still without it.",
        },
    )
