"""The periodic tasks of notifications outside, as rows of django-celery-beat."""

from delivery.periodic import plan


def plan_notices() -> None:
    plan(
        "Paceline's notices",
        task="notices.go_on",
        description="Passes notifications on to the addresses and team members that want them.",
        every=5,
    )


def plan_forgetting() -> None:
    plan(
        "Paceline's old notices",
        task="notices.forget",
        description="Deletes the log of notices after 30 days.",
        every=600,
    )
