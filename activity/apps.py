from django.apps import AppConfig


class ActivityConfig(AppConfig):
    name = "activity"
    verbose_name = "Activity"

    def ready(self) -> None:
        from activity.live import revoke  # noqa: PLC0415 - needs the models

        revoke.watch()
