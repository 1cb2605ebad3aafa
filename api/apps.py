from django.apps import AppConfig
from django.db.models.signals import post_migrate


class ApiConfig(AppConfig):
    name = "api"
    verbose_name = "API"

    def ready(self) -> None:
        from api import periodic  # noqa: PLC0415 - models are ready only now

        for job in (periodic.plan_forgetting, periodic.plan_webhooks):
            post_migrate.connect(
                lambda job=job, **_: job(), sender=self, weak=False, dispatch_uid=job.__name__
            )
