from django.apps import AppConfig
from django.db.models.signals import post_migrate


class QueuesConfig(AppConfig):
    name = "queues"

    def ready(self) -> None:
        from queues import periodic  # noqa: PLC0415 - models are ready only now

        post_migrate.connect(
            lambda **_: periodic.plan_times(), sender=self, weak=False, dispatch_uid="plan_times"
        )
