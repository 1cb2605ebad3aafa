from django.apps import AppConfig
from django.db.models.signals import post_migrate


class RemindersConfig(AppConfig):
    name = "reminders"

    def ready(self) -> None:
        from reminders import periodic  # noqa: PLC0415 - models are ready only now

        for job in (periodic.plan_firing, periodic.plan_approvals, periodic.plan_follow_ups):
            post_migrate.connect(
                lambda job=job, **_: job(), sender=self, weak=False, dispatch_uid=job.__name__
            )
