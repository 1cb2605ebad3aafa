"""Parses `REDIS_URL` once for all that connect: our own client, the broker and the channel layer."""

from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit

from django.core.exceptions import ImproperlyConfigured

SCHEMES = ("redis", "rediss", "unix")
CLUSTERED = ("sentinel", "cluster")
TLS_OPTIONS = ("ssl_cert_reqs", "ssl_check_hostname", "ssl_ca_certs")


@dataclass(frozen=True, slots=True, kw_only=True)
class RedisAddress:
    """The address of Redis, and how its certificate is checked."""

    url: str
    scheme: str
    tls: dict[str, Any] = field(default_factory=dict)  # for redis-py; empty without TLS

    @property
    def broker(self) -> str:
        """Return the same Redis in Celery's spelling, which differs for a socket."""
        if self.scheme != "unix":
            return self.url
        path, _, query = self.url.removeprefix("unix://").partition("?")
        database = parse_qs(query).get("db", ["0"])[0]
        return f"redis+socket://{path}?virtual_host={database}"


def redis_address(url: str, *, ca_file: str = "") -> RedisAddress:
    """Read an address; refuse one that cannot be used safely with a sentence."""
    scheme = url.partition("://")[0].lower()
    if any(word in scheme for word in CLUSTERED):
        raise ImproperlyConfigured(
            f"REDIS_URL starts with {scheme}://: Redis Sentinel and Redis Cluster are not supported. Name the one "
            "server, or an address that always leads to the current primary, as redis:// or rediss://."
        )
    if scheme not in SCHEMES:
        raise ImproperlyConfigured(
            f"REDIS_URL starts with {scheme}://: it must be redis://, rediss:// or unix://."
        )
    plain, tls = _without_tls(url)
    if scheme != "rediss":
        if tls or ca_file:
            raise ImproperlyConfigured(
                "A certificate of Redis is only checked at a REDIS_URL with rediss://."
            )
        return RedisAddress(url=url, scheme=scheme)
    return RedisAddress(url=plain, scheme=scheme, tls=_checked(tls, ca_file))


def _without_tls(url: str) -> tuple[str, dict[str, str]]:
    parts = urlsplit(url)
    query = parse_qsl(parts.query)
    tls = {name: value for name, value in query if name.startswith("ssl_")}
    rest = [(name, value) for name, value in query if not name.startswith("ssl_")]
    return parts._replace(query=urlencode(rest)).geturl(), tls


def _checked(tls: dict[str, str], ca_file: str) -> dict[str, Any]:
    """Refuse an address that turns off the check of certificates: a false Redis could decide what is sent."""
    if unknown := sorted(set(tls) - set(TLS_OPTIONS)):
        raise ImproperlyConfigured(f"REDIS_URL says {unknown[0]}, which is not supported.")
    if tls.get("ssl_cert_reqs", "required").lower() not in {"required", "cert_required"}:
        raise ImproperlyConfigured(
            "REDIS_URL asks not to check Redis' certificate. It is always checked: name the authority that "
            "signed it in REDIS_CA_FILE."
        )
    if tls.get("ssl_check_hostname", "true").lower() not in {"true", "1", "yes"}:
        raise ImproperlyConfigured(
            "REDIS_URL asks not to check the name in Redis' certificate. It is always checked."
        )
    authority = ca_file or tls.get("ssl_ca_certs", "")
    return {
        "ssl_cert_reqs": "required",
        "ssl_check_hostname": True,
        **({"ssl_ca_certs": authority} if authority else {}),
    }
