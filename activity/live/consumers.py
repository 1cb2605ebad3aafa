"""The sockets of open pages: one for a run, one for everything that a person sees. docs/live.md lists the events.

Each socket joins its groups before it reads the state, so that no change is lost between the two. `accounts/roles.py`
decides who may listen: when a page connects, when access changes, and regularly in between.
"""

import json
import time
from enum import IntEnum
from functools import cache
from importlib import import_module
from typing import Any, ClassVar
from urllib.parse import parse_qs
from zoneinfo import ZoneInfo

from channels.auth import get_user
from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncJsonWebsocketConsumer
from django.conf import settings

from accounts.models import Account, User
from accounts.roles import owners_seen_by, visible
from activity.live import messages as live
from activity.models import Notification
from activity.person_events import person_group
from config.redis.live_layer import TROUBLE
from config.shares import Shares
from delivery.live import owner_group, run_group, snapshot
from delivery.models import Run

Event = dict[str, Any]


class Closed(IntEnum):
    """The reason why a socket was refused or closed. A page does not connect again by itself after these."""

    LOGGED_OUT = 4401
    NOT_YOURS = 4403
    NOT_THERE = 4404
    TOO_MANY = 4429
    TRY_AGAIN = 1013  # Redis is away: meanwhile the page asks by itself


@cache
def places() -> Shares:
    """Return the places for sockets of this process; a page without a socket polls for its state."""
    return Shares(total=settings.SOCKETS, each=settings.SOCKETS_PER_PERSON)


def _run_text(event: Event, zone: ZoneInfo) -> str:
    """Return the message of a run as JSON, written once for all sockets of this process: they share the event."""
    texts: dict[str, str] = event.setdefault("texts", {})
    if zone.key not in texts:
        texts[zone.key] = json.dumps(live.run_message(event, zone))
    return texts[zone.key]


class LiveConsumer(AsyncJsonWebsocketConsumer):
    """Lets people listen as long as they are allowed to."""

    TRUSTED_SECONDS: ClassVar = 30.0

    user: User

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.place_of: int | None = None
        self.listening: set[str] = set()
        try:
            await super().__call__(scope, receive, send)
        finally:
            # `disconnect` is not called after an error, as when PostgreSQL is away.
            await self._leave()

    async def connect(self) -> None:
        refusal = await self._enter() or self._take_place()
        messages = [] if refusal else await self.state()
        if refusal or not messages:
            await self._refuse(refusal or Closed.NOT_THERE)
            return
        await self.accept()
        for message in messages:
            await self.send_json(message)

    async def disconnect(self, _code: int) -> None:
        await self._leave()

    async def groups_of(self) -> set[str]:
        """Return the groups that the person may listen to now."""
        raise NotImplementedError

    async def state(self) -> list[live.Message]:
        """Return the messages for a page that just connected, or none when there is nothing to see."""
        raise NotImplementedError

    async def access_changed(self, _event: Event) -> None:
        """Check access again after a change of what the person may see."""
        await self._look_again()

    async def live_again(self, _event: Event) -> None:
        """Send the whole state after Redis was away: messages may have been lost."""
        if await self._look_again():
            for message in await self.state():
                await self.send_json(message)

    async def live_away(self, _event: Event) -> None:
        """Close the socket, so that the page asks for its state until Redis is back."""
        await self._refuse(Closed.TRY_AGAIN)

    async def session_ended(self, event: Event) -> None:
        if event["session"] == self.scope["session"].session_key:
            await self._refuse(Closed.LOGGED_OUT)

    async def run_changed(self, event: Event) -> None:
        if await self._still_trusted():
            await self.send(text_data=_run_text(event, self.zone))

    async def account_changed(self, event: Event) -> None:
        """Ignore the event: a page of one run does not need it."""

    async def notification_made(self, event: Event) -> None:
        """Ignore the event: a page of one run does not need it."""

    async def notifications_read(self, _event: Event) -> None:
        """Ignore the event: a page of one run does not need it."""

    @property
    def zone(self) -> ZoneInfo:
        return ZoneInfo(self.user.zone or settings.TIME_ZONE)

    async def _enter(self) -> Closed | None:
        """Join the groups that the person may listen to; return the reason when there are none."""
        # Read the stored session: the socket's own copy is as old as its connection.
        session = import_module(settings.SESSION_ENGINE).SessionStore(self.scope["session"].session_key)
        user = await get_user({"session": session})
        if not isinstance(user, User):
            return Closed.LOGGED_OUT
        self.user, self._trusted_at = user, time.monotonic()
        groups = await self.groups_of() | {person_group(user.pk)}
        if self.listening - groups:
            return Closed.NOT_YOURS
        return await self._join(groups)

    async def _join(self, groups: set[str]) -> Closed | None:
        for group in groups - self.listening:
            try:
                await self.channel_layer.group_add(group, self.channel_name)
            except TROUBLE:
                return Closed.TRY_AGAIN
            self.listening.add(group)
        return None

    def _take_place(self) -> Closed | None:
        if places().take(self.user.pk):
            return Closed.TOO_MANY
        self.place_of = self.user.pk
        return None

    async def _leave(self) -> None:
        """Give the place back and leave the groups; nothing happens the second time."""
        self._leave_place()
        while self.listening:
            await self.channel_layer.group_discard(self.listening.pop(), self.channel_name)

    def _leave_place(self) -> None:
        if self.place_of is not None:
            places().give_back(self.place_of)
            self.place_of = None

    async def _refuse(self, why: Closed) -> None:
        await self.close(int(why))  # Daphne accepts only a plain int

    async def _still_trusted(self) -> bool:
        if time.monotonic() - self._trusted_at < self.TRUSTED_SECONDS:
            return True
        return await self._look_again()

    async def _look_again(self) -> bool:
        if refusal := await self._enter():
            await self._refuse(refusal)
            return False
        return True


class RunConsumer(LiveConsumer):
    """The socket of one run: /ws/runs/12/."""

    async def groups_of(self) -> set[str]:
        return {run_group(self.run_id)} if await self._run() else set()

    async def state(self) -> list[live.Message]:
        run = await self._run()
        return [live.run_message(snapshot(run), self.zone)] if run else []

    @property
    def run_id(self) -> int:
        return int(self.scope["url_route"]["kwargs"]["run_id"])

    @database_sync_to_async
    def _run(self) -> Run | None:
        return visible(Run.objects.filter(pk=self.run_id), self.user).defer("parts").first()


class MyConsumer(LiveConsumer):
    """The socket of everything that a person sees: /ws/me/. A page names the runs that it shows: /ws/me/?runs=3,17.

    Staff may see everything, but hear only of the runs on their page: nobody could follow all of them.
    """

    @database_sync_to_async
    def groups_of(self) -> set[str]:
        owners = owners_seen_by(self.user)
        others = visible(Run.objects.filter(pk__in=self.wanted), self.user).exclude(owner__in=owners)
        runs = others.values_list("pk", flat=True)
        return {owner_group(owner) for owner in owners} | {run_group(run) for run in runs}

    @database_sync_to_async
    def state(self) -> list[live.Message]:
        return [
            live.unread_message(self.user),
            *live.run_messages(self.user, self.wanted, self.zone),
        ]

    @property
    def wanted(self) -> list[int]:
        query = parse_qs(self.scope["query_string"].decode("ascii", errors="replace"))
        return live.wanted_runs(query.get("runs", [""])[0])

    async def account_changed(self, event: Event) -> None:
        if await self._still_trusted() and (message := await self._account(event["account"])):
            await self.send_json(message)

    async def notification_made(self, event: Event) -> None:
        if await self._still_trusted():
            for message in await self._news(event["notification"]):
                await self.send_json(message)

    async def notifications_read(self, _event: Event) -> None:
        await self.send_json(await database_sync_to_async(live.unread_message)(self.user))

    @database_sync_to_async
    def _account(self, account_id: int) -> live.Message | None:
        rows = visible(Account.objects.filter(pk=account_id), self.user).defer("credentials")
        account = rows.first()
        return live.account_message(account, self.zone) if account else None

    @database_sync_to_async
    def _news(self, notification_id: int) -> list[live.Message]:
        made = Notification.objects.filter(pk=notification_id, owner=self.user).first()
        return [live.unread_message(self.user), *([live.notification_message(made)] if made else [])]
