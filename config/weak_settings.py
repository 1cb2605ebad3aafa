"""Refuses to start where a stranger could forge sessions or choose our host name."""

from collections.abc import Sequence

from django.core.exceptions import ImproperlyConfigured

LEAST_LENGTH = 32
LEAST_DIFFERENT = 10
KNOWN_BEGINNINGS = ("django-insecure-", "development-only-", "changeme", "change-me")
HOW = "Make one: python3 -c 'import secrets; print(secrets.token_urlsafe(50))'"


def refuse_weak_key(name: str, value: str) -> None:
    """Raise ImproperlyConfigured for a key that can be guessed: anyone who knows it can log in as anybody."""
    if len(value) < LEAST_LENGTH or len(set(value)) < LEAST_DIFFERENT:
        raise ImproperlyConfigured(
            f"{name} is too short or too simple: it needs at least {LEAST_LENGTH} random characters. {HOW}"
        )
    if value.lower().startswith(KNOWN_BEGINNINGS):
        raise ImproperlyConfigured(f"{name} looks like an example, which others know too. {HOW}")


def refuse_any_host(hosts: Sequence[str]) -> None:
    """Raise ImproperlyConfigured where every host name is allowed: links and sockets trust the name of a request."""
    if any(host.strip(". ") in {"", "*"} for host in hosts):
        raise ImproperlyConfigured(
            "ALLOWED_HOSTS allows every name. Write the names under which this installation is reached, "
            "separated by commas, as in: paceline.example"
        )
