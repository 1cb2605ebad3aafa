from django.apps import AppConfig


class AccountsConfig(AppConfig):
    name = "accounts"
    verbose_name = "Accounts and recipients"

    def ready(self) -> None:
        from accounts import login  # noqa: PLC0415 - needs the models
        from accounts.recipients import erased  # noqa: PLC0415

        login.watch()
        erased.watch()
