"""The periodic tasks of the API, as rows of django-celery-beat."""

from delivery.periodic import plan


def plan_forgetting() -> None:
    plan(
        "Paceline's stored API answers",
        task="api.forget_answers",
        description="Deletes answers that are kept for repeated requests after 24 hours, and old webhook logs.",
        every=600,
    )


def plan_webhooks() -> None:
    plan(
        "Paceline's webhooks out",
        task="api.dispatch_webhooks",
        description="Delivers events to the webhooks of owners.",
    )
