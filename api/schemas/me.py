"""The shape of a key, as its own program sees it."""

from datetime import datetime

from api.schemas.base import Shown
from api.scopes import Scope


class Owner(Shown):
    """A person to whom rows belong."""

    id: int
    username: str


class KeyShown(Shown):
    """The key of a request."""

    name: str
    prefix: str
    scopes: list[Scope]
    ends_at: datetime | None
    person: Owner
    zone: str
    owners: list[Owner]
    requests_per_minute: int
