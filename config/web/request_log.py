"""Logs the requests that came in, without the secret parts of their addresses.

This is the only log of requests: the web server's own, which does not remove secrets, is off (`daphne -v 0`).
"""

import logging
from collections.abc import Awaitable

from django.http import HttpRequest, HttpResponse
from django_structlog.middlewares import RequestMiddleware

from config.web.log_secrets import without_secret

# Monitoring asks for these every few seconds: they would hide the rest.
PROBES = frozenset({"/healthz", "/readyz"})


class RequestLog(RequestMiddleware):
    """Logs requests as django-structlog does, without secret ends of addresses, and without probes."""

    def __call__(self, request: HttpRequest) -> HttpResponse | Awaitable[HttpResponse]:
        return self.get_response(request) if request.path in PROBES else super().__call__(request)

    @staticmethod
    def format_request(request: HttpRequest) -> str:
        return f"{request.method} {without_secret(request.get_full_path())}"


class WithoutSecrets(logging.Filter):
    """Removes secret ends of addresses from Django's own log lines about a refused request."""

    def filter(self, record: logging.LogRecord) -> bool:
        if isinstance(record.args, tuple):
            record.args = tuple(without_secret(a) if isinstance(a, str) else a for a in record.args)
        return True
