from django.apps import AppConfig


class PeopleConfig(AppConfig):
    name = "people"

    def ready(self) -> None:
        from people.second_factor import watch  # noqa: PLC0415 - its models are there now

        watch()
