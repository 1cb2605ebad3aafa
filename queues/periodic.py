"""The periodic tasks of queues, as rows of django-celery-beat."""

from delivery.periodic import plan


def plan_times() -> None:
    plan(
        "Paceline's planned times",
        task="queues.keep_times",
        description="Moves planned times of items that limits or delivery hours cannot keep.",
        every=60,
    )
