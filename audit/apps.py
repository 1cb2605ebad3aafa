from django.apps import AppConfig


class AuditConfig(AppConfig):
    name = "audit"

    def ready(self) -> None:
        from audit import people  # noqa: PLC0415 - needs the models

        people.watch()
