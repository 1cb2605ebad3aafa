"""Adds to the environment of a developer's checkout: its `.env`, and keys that `make run` made for it."""

import base64
import os
import secrets
from pathlib import Path

import environ

from config.embedded import var_folder
from config.embedded.place import PROJECT, make_home


def load(*, make_keys: bool = False) -> None:
    """Set the variables that the environment does not set.

    Only `make run` makes the keys. Any other program takes them where they exist and where nothing shows a
    deployment: with a SECRET_KEY or a DATABASE_URL of its own, it gets none.
    """
    deployed = bool(os.environ.get("DATABASE_URL"))
    _read(PROJECT / ".env")
    keys = var_folder() / "dev.env"
    if make_keys and not keys.exists():
        _make(keys)
    if make_keys or not (deployed or os.environ.get("SECRET_KEY")):
        _read(keys)


def _read(file: Path) -> None:
    if file.is_file():
        environ.Env.read_env(file)


def _make(keys: Path) -> None:
    """Make the keys once and keep them: sessions and encrypted credentials need the same keys after a restart."""
    make_home(keys.parent)
    draft = keys.with_suffix(".new")
    draft.touch(0o600)
    draft.write_text(
        "DEBUG=true\n"
        f"SECRET_KEY={secrets.token_urlsafe(50)}\n"
        f"ENCRYPTION_KEY={base64.urlsafe_b64encode(secrets.token_bytes(32)).decode()}\n"
    )
    draft.replace(keys)
