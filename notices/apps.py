from django.apps import AppConfig
from django.db.models.signals import post_migrate


class NoticesConfig(AppConfig):
    name = "notices"
    verbose_name = "Notifications outside"

    def ready(self) -> None:
        from activity.privacy.erase import erased  # noqa: PLC0415 - models are ready only now
        from notices import periodic, privacy  # noqa: PLC0415

        erased.connect(privacy.erase, dispatch_uid="notices.erase")
        for job in (periodic.plan_notices, periodic.plan_forgetting):
            post_migrate.connect(
                lambda job=job, **_: job(), sender=self, weak=False, dispatch_uid=f"notices.{job.__name__}"
            )
