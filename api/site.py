"""The API as one object: its routes, its parser, its errors and its description."""

from typing import Any

from ninja import NinjaAPI

from api import description
from api.door import serve, whole
from api.errors import handle_in
from api.parsing import StrictParser
from api.routes import (
    accounts,
    approvals,
    events,
    me,
    media,
    messages,
    queues,
    recipients,
    reminders,
    runs,
    sources,
    tags,
    webhooks,
)


class Api(NinjaAPI):
    """Describes what every route shares, which django-ninja does not know: errors, limits, idempotency, scopes."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self._described: dict[str | None, Any] = {}

    def get_openapi_schema(self, *, path_prefix: str | None = None, **given: Any) -> Any:
        """Return the description. It takes longer than a page may, and stays the same while the program runs."""
        if path_prefix not in self._described:
            schema = super().get_openapi_schema(path_prefix=path_prefix, **given)
            self._described[path_prefix] = description.completed(schema, self)
        return self._described[path_prefix]


api = Api(
    title="Paceline",
    version="1",
    description=description.TEXT,
    urls_namespace="api",
    docs_url=None,
    parser=StrictParser(),
)
handle_in(api)
api.default_router.add_decorator(serve, mode="view")
api.default_router.add_decorator(whole, mode="operation")
for path, router in {
    "/me": me.router,
    "/accounts": accounts.router,
    "/recipients": recipients.router,
    "/tags": tags.router,
    "/reminders": reminders.router,
    "/media": media.router,
    "/messages": messages.router,
    "/queues": queues.router,
    "/sources": sources.router,
    "/approvals": approvals.router,
    "/runs": runs.router,
    "/attempts": events.attempts,
    "/replies": events.replies,
    "/webhooks": webhooks.router,
}.items():
    api.add_router(path, router)
