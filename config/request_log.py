"""Which requests came in, for the log: without what must stay secret in their addresses.

It is the only log of requests: the web server's own, which knows no secrets, is off (`daphne -v 0`).
"""

import logging
import re
from collections.abc import Awaitable

from django.http import HttpRequest, HttpResponse
from django_structlog.middlewares import RequestMiddleware

# Whoever knows the end of these may act by it.
SECRET_END = re.compile(r"^(/(?:hooks/[^/]+|unsubscribe)/).+$")
# Asked every few seconds by whoever watches: they would drown the rest.
PROBES = frozenset({"/healthz", "/readyz"})


def without_secret(address: str) -> str:
    return SECRET_END.sub(r"\1...", address)


class RequestLog(RequestMiddleware):
    """As django-structlog logs requests, with secret ends of addresses left out, and without probes."""

    def __call__(self, request: HttpRequest) -> HttpResponse | Awaitable[HttpResponse]:
        return self.get_response(request) if request.path in PROBES else super().__call__(request)

    @staticmethod
    def format_request(request: HttpRequest) -> str:
        return f"{request.method} {without_secret(request.get_full_path())}"


class WithoutSecrets(logging.Filter):
    """The same for what Django itself says about a request that it refused."""

    def filter(self, record: logging.LogRecord) -> bool:
        if isinstance(record.args, tuple):
            record.args = tuple(without_secret(a) if isinstance(a, str) else a for a in record.args)
        return True
