"""Encryption of stored credentials, with keys of their own that can be rotated."""

import json
from collections.abc import Iterator, Mapping
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import models

UNREADABLE = "No key in ENCRYPTION_KEY opens these credentials: add the key they were stored with."


class UnreadableSecretError(Exception):
    """None of the configured keys decrypts the stored secret."""


@cache
def _cipher(keys: tuple[str, ...]) -> MultiFernet:
    try:
        return MultiFernet([Fernet(key.strip()) for key in keys])
    except ValueError as error:
        raise ImproperlyConfigured(
            "ENCRYPTION_KEY is not a Fernet key (32 bytes, urlsafe base64). Make one with `manage.py make_key`."
        ) from error


def cipher() -> MultiFernet:
    """Return the cipher: the newest key encrypts, every configured key decrypts."""
    return _cipher(tuple(settings.ENCRYPTION_KEYS))


def encrypt(value: dict[str, str]) -> str:
    return cipher().encrypt(json.dumps(value, sort_keys=True).encode()).decode()


def decrypt(stored: str) -> dict[str, str]:
    try:
        plain: dict[str, str] = json.loads(cipher().decrypt(stored.encode()))
    except InvalidToken as error:
        raise UnreadableSecretError(UNREADABLE) from error
    return plain


def reencrypt(stored: str) -> str:
    """Return the same secret, encrypted with the newest key."""
    try:
        return cipher().rotate(stored.encode()).decode()
    except InvalidToken as error:
        raise UnreadableSecretError(UNREADABLE) from error


class Sealed(Mapping[str, str]):
    """Stored credentials that are decrypted when they are read: a lost key must not break every list of accounts."""

    def __init__(self, stored: str) -> None:
        self.stored = stored

    @cached_property
    def _plain(self) -> dict[str, str]:
        return decrypt(self.stored)

    def __getitem__(self, name: str) -> str:
        return self._plain[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._plain)

    def __len__(self) -> int:
        return len(self._plain)

    def __repr__(self) -> str:
        return "<sealed credentials>"


if TYPE_CHECKING:
    _TextField = models.TextField[Mapping[str, str], Mapping[str, str]]
else:
    _TextField = models.TextField


class EncryptedJSONField(_TextField):
    """A small JSON object that is always encrypted in the database."""

    def from_db_value(self, value: str | None, *_: Any) -> Mapping[str, str]:
        return Sealed(value) if value else {}

    def get_prep_value(self, value: Mapping[str, str] | None) -> str:
        if isinstance(value, Sealed):
            return value.stored
        return encrypt(dict(value)) if value else ""

    def to_python(self, value: Any) -> Mapping[str, str]:
        """Accept JSON from a form, or the text that `value_to_string` wrote into a fixture."""
        if not isinstance(value, str) or not value:
            return value or {}
        plain: dict[str, str] = json.loads(value) if value.startswith("{") else decrypt(value)
        return plain

    def value_to_string(self, obj: models.Model) -> str:
        """Return the encrypted form, so that fixtures and dumps never hold the secret."""
        return self.get_prep_value(self.value_from_object(obj))
