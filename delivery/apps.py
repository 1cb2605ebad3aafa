from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db.models.signals import post_delete, post_migrate, post_save

from delivery.reach import reach_of


def _check_settings() -> None:
    """A network that nobody can read must not open or close others in silence."""
    try:
        reach_of(settings.PRIVATE_NETWORKS)
    except ValueError as error:
        raise ImproperlyConfigured(f"PRIVATE_NETWORKS: {error}. Correct or unset it.") from error


class DeliveryConfig(AppConfig):
    name = "delivery"

    def ready(self) -> None:
        _check_settings()
        from accounts.models import Account, Limit  # noqa: PLC0415 - models are ready only now
        from delivery import periodic  # noqa: PLC0415
        from delivery.queues import look_again, tell_workers  # noqa: PLC0415

        def added(created: bool, **_: Any) -> None:
            if created:
                tell_workers()

        def changed(instance: Limit, **_: Any) -> None:
            look_again(instance.account_id)

        for signal in (post_save, post_delete):
            signal.connect(changed, sender=Limit, weak=False, dispatch_uid="look_again")
        jobs = (periodic.plan_tick, periodic.plan_warm_ups, periodic.plan_reports, periodic.plan_imports)
        for job in jobs:
            post_migrate.connect(
                lambda job=job, **_: job(), sender=self, weak=False, dispatch_uid=job.__name__
            )
        post_save.connect(added, sender=Account, weak=False, dispatch_uid="tell_workers")
