from typing import Any

import structlog
from celery.signals import worker_ready
from django.apps import AppConfig
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db.models.signals import post_delete, post_migrate, post_save

from config.celery import BEAT

log = structlog.get_logger(__name__)


def _check_settings() -> None:
    """Raise ImproperlyConfigured where PRIVATE_NETWORKS holds a network that cannot be read.

    A value that is skipped silently could open or close the wrong networks.
    """
    from delivery.transports.networks.allowed import allowed_networks  # noqa: PLC0415 - with all transports

    try:
        allowed_networks(settings.PRIVATE_NETWORKS)
    except ValueError as error:
        raise ImproperlyConfigured(f"PRIVATE_NETWORKS: {error}. Correct or unset it.") from error


def tell_of_networks(**_: Any) -> None:
    """Log once, when a server starts, which networks the default of PRIVATE_NETWORKS closes to accounts."""
    from delivery.transports.networks.allowed import hint  # noqa: PLC0415

    words = hint(settings.PRIVATE_NETWORKS, chosen=settings.PRIVATE_NETWORKS_CHOSEN)
    if words:
        log.warning("private_networks_closed", hint=words)


class DeliveryConfig(AppConfig):
    name = "delivery"

    def ready(self) -> None:
        if BEAT:  # it sends the names of tasks: it connects to no service and saves no account
            return
        _check_settings()
        worker_ready.connect(tell_of_networks, weak=False, dispatch_uid="tell_of_networks")
        from accounts.models import Account, Limit  # noqa: PLC0415 - models are ready only now
        from delivery import periodic  # noqa: PLC0415
        from delivery.engine.wakeups import look_again, tell_workers  # noqa: PLC0415

        def added(created: bool, **_: Any) -> None:
            if created:
                tell_workers()

        def changed(instance: Limit, **_: Any) -> None:
            look_again(instance.account_id)

        for signal in (post_save, post_delete):
            signal.connect(changed, sender=Limit, weak=False, dispatch_uid="look_again")
        jobs = (
            periodic.plan_tick,
            periodic.plan_warm_ups,
            periodic.plan_reports,
            periodic.plan_own_limits,
            periodic.plan_sender_domains,
            periodic.plan_imports,
            periodic.plan_health,
            periodic.plan_pruning,
            periodic.plan_ledger_months,
        )
        for job in jobs:
            post_migrate.connect(
                lambda job=job, **_: job(), sender=self, weak=False, dispatch_uid=job.__name__
            )
        post_save.connect(added, sender=Account, weak=False, dispatch_uid="tell_workers")
