from django.apps import AppConfig
from django.db.models.signals import post_migrate


class QueuesConfig(AppConfig):
    name = "queues"

    def ready(self) -> None:
        from queues import periodic  # noqa: PLC0415 - models are ready only now

        for job in (periodic.plan_times, periodic.plan_imports, periodic.plan_sources):
            post_migrate.connect(
                lambda job=job, **_: job(), sender=self, weak=False, dispatch_uid=job.__name__
            )
