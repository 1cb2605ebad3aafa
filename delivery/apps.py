from typing import Any

from django.apps import AppConfig
from django.db.models.signals import post_migrate, post_save


class DeliveryConfig(AppConfig):
    name = "delivery"

    def ready(self) -> None:
        from accounts.models import Account  # noqa: PLC0415 - models are ready only now
        from delivery.periodic import plan_reports, plan_tick, plan_warm_ups  # noqa: PLC0415
        from delivery.queues import tell_workers  # noqa: PLC0415

        def added(created: bool, **_: Any) -> None:
            if created:
                tell_workers()

        post_migrate.connect(lambda **_: plan_tick(), sender=self, weak=False, dispatch_uid="plan_tick")
        post_migrate.connect(
            lambda **_: plan_warm_ups(), sender=self, weak=False, dispatch_uid="plan_warm_ups"
        )
        post_migrate.connect(lambda **_: plan_reports(), sender=self, weak=False, dispatch_uid="plan_reports")
        post_save.connect(added, sender=Account, weak=False, dispatch_uid="tell_workers")
