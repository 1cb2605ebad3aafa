"""Which requests came in, for the log: without what must stay secret in their addresses."""

import logging
import re

from django.http import HttpRequest
from django_structlog.middlewares import RequestMiddleware

# Whoever knows the end of these may act by it.
SECRET_END = re.compile(r"^(/(?:hooks/[^/]+|unsubscribe)/).+$")


def without_secret(address: str) -> str:
    return SECRET_END.sub(r"\1...", address)


class RequestLog(RequestMiddleware):
    """As django-structlog logs requests, with secret ends of addresses left out."""

    @staticmethod
    def format_request(request: HttpRequest) -> str:
        return f"{request.method} {without_secret(request.get_full_path())}"


class WithoutSecrets(logging.Filter):
    """The same for what Django itself says about a request that it refused."""

    def filter(self, record: logging.LogRecord) -> bool:
        if isinstance(record.args, tuple):
            record.args = tuple(without_secret(a) if isinstance(a, str) else a for a in record.args)
        return True
