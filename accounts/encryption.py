"""Credentials encrypted at rest, with keys of their own that can be rotated."""

import json
from functools import cache
from typing import TYPE_CHECKING, Any

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import models


class UnreadableSecretError(Exception):
    """None of the configured keys opens what is stored."""


@cache
def _cipher(keys: tuple[str, ...]) -> MultiFernet:
    try:
        return MultiFernet([Fernet(key.strip()) for key in keys])
    except ValueError as error:
        raise ImproperlyConfigured(
            "ENCRYPTION_KEY is not a Fernet key (32 bytes, urlsafe base64). Make one with `manage.py make_key`."
        ) from error


def cipher() -> MultiFernet:
    """The newest key encrypts, every configured key decrypts."""
    return _cipher(tuple(settings.ENCRYPTION_KEYS))


def encrypt(value: dict[str, str]) -> str:
    return cipher().encrypt(json.dumps(value, sort_keys=True).encode()).decode()


def decrypt(stored: str) -> dict[str, str]:
    try:
        plain: dict[str, str] = json.loads(cipher().decrypt(stored.encode()))
    except InvalidToken as error:
        raise UnreadableSecretError(
            "No key in ENCRYPTION_KEY opens these credentials: add the key they were stored with."
        ) from error
    return plain


def reencrypt(stored: str) -> str:
    """The same secret under the newest key."""
    return cipher().rotate(stored.encode()).decode()


if TYPE_CHECKING:
    _TextField = models.TextField[dict[str, str], dict[str, str]]
else:
    _TextField = models.TextField


class EncryptedJSONField(_TextField):
    """A small JSON object that only ever reaches the database encrypted."""

    def from_db_value(self, value: str | None, *_: Any) -> dict[str, str]:
        return decrypt(value) if value else {}

    def get_prep_value(self, value: dict[str, str] | None) -> str:
        return encrypt(value) if value else ""

    def to_python(self, value: Any) -> dict[str, str]:
        return json.loads(value) if isinstance(value, str) and value else value or {}

    def value_to_string(self, obj: models.Model) -> str:
        """Fixtures and dumps get the encrypted form, never the secret."""
        return self.get_prep_value(self.value_from_object(obj))
