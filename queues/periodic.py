"""Registers the periodic jobs of queues as rows of django-celery-beat."""

from delivery.periodic import plan


def plan_times() -> None:
    plan(
        "Paceline's planned times",
        task="queues.keep_times",
        description="Moves planned times of items that limits or delivery hours cannot keep.",
        every=60,
    )


def plan_imports() -> None:
    plan(
        "Paceline's imports of items",
        task="queues.rescue_imports",
        description="Starts imports of items again that a worker left.",
        every=60,
    )


def plan_sources() -> None:
    plan(
        "Paceline's sources",
        task="queues.dispatch_sources",
        description="Reads Notion databases and Google sheets, and writes back what became of their rows.",
        every=10,
    )
