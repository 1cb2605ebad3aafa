"""The filter of the list of recipients, read from the address; export and tagging use the same filter."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from urllib.parse import urlencode

from django.db.models import Exists, OuterRef, QuerySet

from accounts.models import Recipient, User
from accounts.models.account import Channel
from accounts.recipients.search import matching
from accounts.recipients.states import STATES, in_state
from accounts.regions import region_of
from accounts.roles import visible


@dataclass(frozen=True, slots=True, kw_only=True)
class RecipientFilter:
    """The filter. Unknown values are ignored: an old link shows more rows, never an empty list without a reason."""

    q: str = ""
    tag: int | None = None
    state: str = ""
    channel: str = ""
    account: int | None = None

    @classmethod
    def of(cls, address: Mapping[str, str]) -> "RecipientFilter":
        asked = {name: address.get(name, "").strip() for name in cls.__slots__}
        return cls(
            q=asked["q"].replace("\0", ""),
            tag=_id(asked["tag"]),
            state=asked["state"] if asked["state"] in STATES else "",
            channel=asked["channel"] if asked["channel"] in Channel.values else "",
            account=_id(asked["account"]),
        )

    def __bool__(self) -> bool:
        return any(asdict(self).values())

    @property
    def query(self) -> str:
        """Return the filter as the query part of an address."""
        return urlencode({name: value for name, value in asdict(self).items() if value})

    def rows(self, user: User) -> QuerySet[Recipient]:
        """Return the recipients that match the filter and that `user` may see."""
        rows = in_state(visible(Recipient.objects.all(), user), self.state)
        if self.channel:
            rows = rows.filter(channel=self.channel)
        if self.account:
            rows = rows.filter(account=self.account)
        if self.tag:
            ties = Recipient.tags.through.objects.filter(tag=self.tag, recipient=OuterRef("pk"))
            rows = rows.filter(Exists(ties))
        return matching(rows, self.q, region=region_of(user)) if self.q else rows


def _id(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None
