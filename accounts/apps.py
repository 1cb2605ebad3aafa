from types import ModuleType

from django.apps import AppConfig


class AccountsConfig(AppConfig):
    name = "accounts"
    verbose_name = "Accounts and recipients"

    def __init__(self, app_name: str, app_module: ModuleType | None) -> None:
        from accounts import form_errors  # noqa: PLC0415 - before any app's models and forms are read

        super().__init__(app_name, app_module)
        form_errors.set_words()

    def ready(self) -> None:
        from accounts import login  # noqa: PLC0415 - needs the models
        from accounts.recipients import erased  # noqa: PLC0415

        login.watch()
        erased.watch()
