"""Decides which push services Paceline posts to: those of the known browsers, and those in PUSH_SERVICES.

A browser says itself where its push service is, so this address comes from a stranger. It is checked when the browser
subscribes, and again before each message: a row may be older than a rule.
"""

from collections.abc import Collection

from django.conf import settings

from delivery.transports.networks.addresses import BadWebAddressError, WebAddress, web_address


class UnknownPushServiceError(ValueError):
    """The address belongs to no push service that Paceline posts to."""


def push_address(endpoint: str) -> WebAddress:
    """Return the address of a browser at its push service, rebuilt from its parts; raises UnknownPushServiceError."""
    try:
        found = web_address(endpoint)
    except BadWebAddressError as error:
        raise UnknownPushServiceError("The address of the push service cannot be read.") from error
    if not is_known(found, settings.PUSH_SERVICES):
        raise UnknownPushServiceError("This push service is not known.")
    return found


def is_known(address: WebAddress, services: Collection[str]) -> bool:
    """Return whether the address belongs to one of `services`.

    A service is a host name, which covers itself and all names below it over https, or an origin such as
    http://127.0.0.1:9000, which covers only itself.
    """
    if address.origin in services:
        return True
    https = address.scheme == "https" and address.port == 443
    return https and any(f".{address.host}".endswith(f".{service}") for service in services)
