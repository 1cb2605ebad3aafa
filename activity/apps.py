from typing import Any

from celery.signals import worker_ready
from django.apps import AppConfig


class ActivityConfig(AppConfig):
    name = "activity"
    verbose_name = "Activity"

    def ready(self) -> None:
        from activity.live import revoke  # noqa: PLC0415 - needs the models

        revoke.watch()
        worker_ready.connect(_compare_media, weak=False, dispatch_uid="compare_media")


def _compare_media(**_: Any) -> None:
    """Say in the log of a worker that starts whether it sees other media than the web servers."""
    from activity import heartbeats  # noqa: PLC0415 - needs the settings

    heartbeats.compare_media()
