"""The periodic tasks of the API, as rows of django-celery-beat."""

from delivery.periodic import plan


def plan_forgetting() -> None:
    plan(
        "Paceline's stored API answers",
        task="api.forget_answers",
        description="Deletes answers that are kept for repeated requests, after 24 hours.",
        every=600,
    )
