"""One of everything of an owner, and for each route of the API an address and a body that make sense."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from accounts.models import User
from api.site import api
from tests.factories import (
    AccountFactory,
    ApprovalFactory,
    DeliveryFactory,
    InboundFactory,
    ItemFactory,
    MediaFactory,
    QueueFactory,
    RecipientFactory,
    ReminderFactory,
    RunAccountFactory,
    RunFactory,
    RunTargetFactory,
    SourceFactory,
    TagFactory,
    WebhookFactory,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """One operation of the API."""

    method: str
    path: str  # as the description writes it, without the prefix
    scope: str

    @property
    def name(self) -> str:
        return f"{self.method} {self.path}"


def routes() -> list[Route]:
    """Return every operation of the description."""
    paths = api.get_openapi_schema(path_prefix="")["paths"]
    return [
        Route(method=method.upper(), path=path, scope=operation["x-scope"])
        for path, operations in paths.items()
        for method, operation in operations.items()
    ]


NOUNS = {"sources": "table"}


@dataclass(slots=True)
class Things:
    """Rows of one owner that every route can be asked about."""

    owner: User
    ids: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        account = AccountFactory.create(owner=self.owner)
        tag = TagFactory.create(owner=self.owner)
        recipient = RecipientFactory.create(owner=self.owner, tags=[tag])
        reminder = ReminderFactory.create(
            owner=self.owner, by_hand=True, around_the_clock=True, accounts=[account], recipients=[recipient]
        )
        run = RunFactory.create(reminder=reminder, unconfirmed=1)
        RunAccountFactory.create(run=run, account=account)
        target = RunTargetFactory.create(run=run, recipient=recipient, account=account, unconfirmed=True)
        self.ids = {
            "accounts": account.pk,
            "other account": AccountFactory.create(owner=self.owner).pk,
            "recipients": recipient.pk,
            "tags": tag.pk,
            "reminders": reminder.pk,
            "media": MediaFactory.create(owner=self.owner).pk,
            "runs": run.pk,
            "target": target.pk,
            "queues": (queue := QueueFactory.create(owner=self.owner, accounts=[account])).pk,
            # Not under the name of its pages: the walk of addresses would ask Notion for its columns.
            "table": SourceFactory.create(queue=queue).pk,
            "item": ItemFactory.create(queue=queue).pk,
            "replies": InboundFactory.create(account=account, recipient=recipient).pk,
            "webhooks": (webhook := WebhookFactory.create(owner=self.owner)).pk,
            "delivery": DeliveryFactory.create(webhook=webhook).pk,
            "approvals": ApprovalFactory.create(owner=self.owner).pk,
        }

    def address(self, route: Route) -> str:
        """Return the route's address with the ids of this owner's rows."""
        noun = NOUNS.get(found := route.path.split("/")[1], found)
        filled = route.path.replace("{pk}", str(self.ids.get(noun, 0)))
        filled = filled.replace("{target}", str(self.ids["target"]))
        filled = filled.replace("{delivery}", str(self.ids["delivery"]))
        filled = filled.replace("{item}", str(self.ids["item"]))
        verbs = {"queues": "pause", "runs": "pause" if "targets" not in route.path else "confirm"}
        filled = filled.replace("{verb}", verbs.get(noun, ""))
        return filled.replace("{action}", "message" if noun == "accounts" else "opt-out")

    def path_of(self, path: str) -> dict[str, Any]:
        """Return the values in a path that name rows of this owner."""
        noun = NOUNS.get(found := path.removeprefix("/api/v1").split("/")[1], found)
        real = {"pk": self.ids.get(noun)} | {name: self.ids[name] for name in ("target", "delivery", "item")}
        return {name: value for name, value in real.items() if value and f"{{{name}}}" in path}

    def body(self, route: Route) -> Any:
        """Return a body with which the route works."""
        return dict(self._bodies()).get(route.name)

    def _bodies(self) -> Iterator[tuple[str, Any]]:
        ids = self.ids
        yield "PUT /accounts/{pk}/limits/{action}", {"per_day": 5}
        for noun in ("accounts", "runs"):
            yield f"POST /{noun}/{{pk}}/hand-over", {"to": [ids["other account"]]}
        yield "PUT /accounts/{pk}/working-hours", {"start_hour": 9, "end_hour": 17, "days": [0, 1, 2]}
        yield (
            "POST /recipients",
            {
                "recipients": [{"channel": "whatsapp", "address": "+60129998877"}],
                "owner": self.owner.pk,
            },
        )
        yield "PATCH /recipients/{pk}", {"name": "Another name"}
        yield "POST /recipients/{pk}/{action}", {"how": "They asked by phone."}
        yield "POST /recipients/{pk}/erase", {"confirmed": True}
        yield "POST /approvals/{pk}/approve", {"content": "c" * 32}
        yield "POST /approvals/{pk}/refuse", {"content": "c" * 32, "reason": "Not this week."}
        yield "POST /tags", {"name": "New", "owner": self.owner.pk}
        yield "PATCH /tags/{pk}", {"name": "Renamed"}
        yield "POST /tags/{pk}/recipients", {"add": [ids["recipients"]]}
        yield "POST /reminders", {"name": "New", "owner": self.owner.pk}
        yield "PUT /reminders/{pk}/message", {"parts": [{"text": "Hi"}]}
        yield "PUT /reminders/{pk}/audience", {"tags": [ids["tags"]]}
        yield "PUT /reminders/{pk}/times", {"priority": 3}
        yield (
            "POST /webhooks",
            {"url": "https://example.com/hook", "events": ["run.finished"], "owner": self.owner.pk},
        )
        yield "PATCH /webhooks/{pk}", {"events": ["reply.received"]}
        item = {"own_id": "row-1", "address": "+60129998877", "text": "Hi"}
        yield "POST /queues/{pk}/items", {"items": [item]}
        yield "POST /queues/{pk}/items/withdraw", {"items": [1]}
        yield "POST /queues/{pk}/items/plan", {"items": [1]}
        yield "POST /sources/{pk}/withdraw-missing", {"confirmed": True}
        yield "POST /messages", {"accounts": [ids["accounts"]], "recipient": ids["recipients"], "text": "Hi"}
