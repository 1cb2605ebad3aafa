"""The sockets of open pages: who may listen, what they hear, and when they are closed."""

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from datetime import tzinfo
from typing import Any

import pytest
from channels.db import database_sync_to_async
from channels.layers import get_channel_layer
from channels.testing import WebsocketCommunicator
from channels_redis.core import RedisChannelLayer
from django.conf import settings as django_settings
from django.test import Client
from pytest_django import Settings
from redis import Redis
from redis.exceptions import ConnectionError as RedisConnectionError

from accounts.models import TeamMate, User
from activity.live import messages
from activity.live.consumers import LiveConsumer, places
from activity.models import Notification
from activity.notify import tell
from config.asgi import application
from config.redis.client import client
from config.redis.live_layer import LiveLayer
from delivery import live
from delivery.models import Run
from tests.factories import AccountFactory, NotificationFactory, ReminderFactory, RunFactory

pytestmark = pytest.mark.django_db(transaction=True)

HOST = b"paceline.example"


def cookie_of(user: User) -> bytes:
    client = Client()
    client.force_login(user)
    return f"{django_settings.SESSION_COOKIE_NAME}={client.cookies[django_settings.SESSION_COOKIE_NAME].value}".encode()


def socket(
    path: str,
    cookie: bytes | None,
    *,
    origin: bytes | None = b"https://paceline.example",
    host: bytes = HOST,
) -> WebsocketCommunicator:
    headers = [(b"host", host)]
    headers += [(b"origin", origin)] if origin else []
    headers += [(b"cookie", cookie)] if cookie else []
    return WebsocketCommunicator(application, path, headers=headers)


@asynccontextmanager
async def listening(path: str, cookie: bytes) -> AsyncIterator[WebsocketCommunicator]:
    opened = socket(path, cookie)
    connected, _ = await opened.connect()
    assert connected
    yield opened
    await opened.disconnect()


async def closed_with(opened: WebsocketCommunicator) -> int:
    """The code of the close, after what was still said before it."""
    for _ in range(10):
        said: dict[str, Any] = await opened.receive_output()
        if said["type"] == "websocket.close":
            await opened.disconnect(timeout=0.1)
            return int(said["code"])
    raise AssertionError("It goes on talking.")


async def hear(opened: WebsocketCommunicator, kind: str) -> dict[str, Any]:
    """The next message of this kind."""
    for _ in range(10):
        message: dict[str, Any] = await opened.receive_json_from(timeout=5)
        if message["type"] == kind:
            return message
    raise AssertionError(f"Nothing of {kind} was said.")


async def refused(path: str, cookie: bytes | None, **how: Any) -> int:
    opened = socket(path, cookie, **how)
    connected, code = await opened.connect()
    assert not connected
    await opened.disconnect(timeout=0.1)
    return int(code or 0)


@database_sync_to_async
def change(run: Run, **values: object) -> None:
    Run.objects.filter(pk=run.pk).update(**values)


@database_sync_to_async
def leave_unheard(mate: User) -> None:
    """Change the row as SQL would: no signal is sent."""
    TeamMate.objects.filter(mate=mate)._raw_delete("default")


@pytest.fixture(autouse=True)
def _clean(redis: Redis, settings: Settings) -> Iterator[None]:
    """Remove the groups and places of other tests."""
    settings.ALLOWED_HOSTS = [HOST.decode(), "testserver"]
    places.cache_clear()
    yield
    places.cache_clear()


@pytest.fixture
def run(owner: User) -> Run:
    return RunFactory.create(
        reminder=ReminderFactory.create(owner=owner), sent=3, failed=1, pending=5, sending=1
    )


@pytest.fixture
def cookies(owner: User, mate: User, reader: User, stranger: User, staff: User) -> dict[str, bytes]:
    people = {"owner": owner, "mate": mate, "reader": reader, "stranger": stranger, "staff": staff}
    return {name: cookie_of(person) for name, person in people.items()}


@pytest.mark.parametrize("who", ["owner", "mate", "reader", "staff"])
async def test_who_sees_a_run_hears_how_it_stands(run: Run, cookies: dict[str, bytes], who: str) -> None:
    async with listening(f"/ws/runs/{run.pk}/", cookies[who]) as opened:
        message = await hear(opened, "run")
    assert message["run"] == run.pk
    assert message["counts"] == {"sent": 3, "failed": 1, "skipped": 0, "unconfirmed": 0, "pending": 6}
    assert message["look"] == {"icon": "running", "word": "Running", "tone": "busy"}
    assert message["text"]["percent"] == "40%"


async def test_a_stranger_and_a_visitor_are_refused(run: Run, cookies: dict[str, bytes]) -> None:
    assert await refused(f"/ws/runs/{run.pk}/", cookies["stranger"]) == 4404
    assert await refused(f"/ws/runs/{run.pk}/", None) == 4401
    assert await refused("/ws/me/", None) == 4401
    assert await refused(f"/ws/runs/{run.pk + 1}/", cookies["owner"]) == 4404


@pytest.mark.parametrize("origin", [b"https://elsewhere.example", b"https://paceline.example:8443", None])
async def test_another_sites_page_opens_no_socket(cookies: dict[str, bytes], origin: bytes | None) -> None:
    assert await refused("/ws/me/", cookies["owner"], origin=origin) == 1000


@pytest.mark.parametrize("host", [b"evil.example", b"paceline.example.evil.example", b"", b"[", b"127.0.0.1"])
async def test_a_page_that_calls_our_address_its_own_opens_no_socket(
    cookies: dict[str, bytes], host: bytes
) -> None:
    """With DNS rebinding, a foreign page has a name that leads here: its host and its origin are the same."""
    assert await refused("/ws/me/", cookies["owner"], origin=b"https://" + host, host=host) == 1000


async def test_one_person_has_so_many_sockets_and_another_still_gets_one(
    cookies: dict[str, bytes], settings: Settings
) -> None:
    settings.SOCKETS_PER_PERSON = 2
    places.cache_clear()
    async with listening("/ws/me/", cookies["owner"]), listening("/ws/me/", cookies["owner"]):
        assert await refused("/ws/me/", cookies["owner"]) == 4429
        async with listening("/ws/me/", cookies["stranger"]):
            pass
    async with listening("/ws/me/", cookies["owner"]):  # the places are free again
        pass


async def test_an_unknown_address_is_refused(cookies: dict[str, bytes]) -> None:
    assert await refused("/ws/elsewhere/", cookies["owner"]) == 1000


@pytest.mark.parametrize("path", ["/ws/runs/{}/", "/ws/me/"])
async def test_a_change_is_heard(run: Run, cookies: dict[str, bytes], path: str) -> None:
    async with listening(path.format(run.pk), cookies["owner"]) as opened:
        await opened.receive_json_from()
        await change(run, sent=4, sending=0)
        live.run_changed(run.pk, run.owner_id)
        message = await hear(opened, "run")
    assert message["text"]["sent"] == "4"


async def test_a_message_is_written_once_for_all_pages_of_a_zone(
    run: Run, cookies: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    path, written, write = f"/ws/runs/{run.pk}/", [], messages.run_message

    def noted(facts: Mapping[str, Any], zone: tzinfo) -> messages.Message:
        written.append(facts["sent"])
        return write(facts, zone)

    monkeypatch.setattr(messages, "run_message", noted)
    async with listening(path, cookies["owner"]) as one, listening(path, cookies["mate"]) as other:
        for opened in (one, other):
            await opened.receive_json_from()
        await change(run, sent=4, sending=0)
        live.run_changed(run.pk, run.owner_id)
        assert [(await hear(opened, "run"))["text"]["sent"] for opened in (one, other)] == ["4", "4"]
    assert written == [3, 3, 4], "once for each page as it opens, then once for both"


async def test_the_snapshot_comes_again_after_a_break(run: Run, cookies: dict[str, bytes]) -> None:
    path = f"/ws/me/?runs={run.pk}"
    async with listening(path, cookies["owner"]) as opened:
        assert (await hear(opened, "run"))["status"] == "running"
    await change(run, status="paused", pause_reason="operator", pending=6, sending=0)
    async with listening(path, cookies["owner"]) as opened:
        assert (await hear(opened, "run"))["status"] == "paused"


async def test_a_page_is_told_of_its_own_runs_and_of_no_stranger_s(
    run: Run, cookies: dict[str, bytes]
) -> None:
    async with listening(f"/ws/me/?runs={run.pk},x,7777777", cookies["stranger"]) as opened:
        assert await opened.receive_json_from() == {"type": "unread", "unread": 0}
        live.run_changed(run.pk, run.owner_id)
        await database_sync_to_async(live.flush)()
        assert await opened.receive_nothing(timeout=0.2)


async def test_staff_hear_of_the_runs_on_their_page(run: Run, cookies: dict[str, bytes]) -> None:
    async with listening(f"/ws/me/?runs={run.pk}", cookies["staff"]) as opened:
        await hear(opened, "run")
        live.run_changed(run.pk, run.owner_id)
        assert (await hear(opened, "run"))["run"] == run.pk


async def test_a_team_mate_hears_of_the_owners_accounts(owner: User, cookies: dict[str, bytes]) -> None:
    account = await database_sync_to_async(AccountFactory.create)(owner=owner, offline=True)
    async with listening("/ws/me/", cookies["reader"]) as opened:
        live.account_changed(account.pk, owner.pk)
        message = await hear(opened, "account")
    assert (message["account"], message["status"], message["look"]["word"]) == (
        account.pk,
        "offline",
        "Offline",
    )


async def test_news_is_for_its_owner_alone(owner: User, cookies: dict[str, bytes]) -> None:
    async with (
        listening("/ws/me/", cookies["owner"]) as opened,
        listening("/ws/me/", cookies["mate"]) as other,
    ):
        await hear(opened, "unread")
        await hear(other, "unread")
        await database_sync_to_async(tell)(
            owner.pk, Notification.Kind.PAUSED, key="a", title="Reminder paused", body="3 of 10", url="/"
        )
        assert (await hear(opened, "unread"))["unread"] == 1
        assert await hear(opened, "notification") == {
            "type": "notification",
            "title": "Reminder paused",
            "body": "3 of 10",
            "url": "/",
            "tag": "a",
        }
        assert await other.receive_nothing(timeout=0.2)


async def test_reading_in_one_page_is_seen_in_another(owner: User, cookies: dict[str, bytes]) -> None:
    await database_sync_to_async(NotificationFactory.create)(owner=owner)
    async with listening("/ws/me/", cookies["owner"]) as opened:
        assert (await hear(opened, "unread"))["unread"] == 1
        await _post(cookies["owner"], "/notifications/read/")
        assert (await hear(opened, "unread"))["unread"] == 0


async def test_logging_out_closes_that_sessions_sockets_and_no_others(
    owner: User, cookies: dict[str, bytes]
) -> None:
    phone = await database_sync_to_async(cookie_of)(owner)
    async with listening("/ws/me/", phone) as other:
        opened = socket("/ws/me/", cookies["owner"])
        assert (await opened.connect())[0]
        await _post(cookies["owner"], "/logout/")
        assert await closed_with(opened) == 4401
        await hear(other, "unread")
        assert await other.receive_nothing(timeout=0.2)


def _leave(mate: User) -> None:
    TeamMate.objects.filter(mate=mate).get().delete()


def _deactivate(mate: User) -> None:
    mate.is_active = False
    mate.save()


def _new_password(mate: User) -> None:
    mate.set_password("another way to the pace line")
    mate.save()


@pytest.mark.parametrize(("change", "code"), [(_leave, 4403), (_deactivate, 4401), (_new_password, 4401)])
@pytest.mark.parametrize("path", ["/ws/runs/{}/", "/ws/me/"])
async def test_who_loses_access_is_disconnected(
    run: Run, mate: User, cookies: dict[str, bytes], change: Callable[[User], None], code: int, path: str
) -> None:
    opened = socket(path.format(run.pk), cookies["mate"])
    assert (await opened.connect())[0]
    await database_sync_to_async(change)(mate)
    assert await closed_with(opened) == code


async def test_access_that_was_lost_unheard_is_noticed_before_the_next_message(
    run: Run, cookies: dict[str, bytes], mate: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LiveConsumer, "TRUSTED_SECONDS", 0.0)
    opened = socket(f"/ws/runs/{run.pk}/", cookies["mate"])
    assert (await opened.connect())[0]
    await leave_unheard(mate)
    live.run_changed(run.pk, run.owner_id)
    assert await closed_with(opened) == 4403


@database_sync_to_async
def _post(cookie: bytes, path: str) -> None:
    name, _, value = cookie.decode().partition("=")
    client = Client()
    client.cookies[name] = value
    assert client.post(path).status_code == 302


def test_a_quiet_socket_is_not_cut_off_by_the_clients_own_timeout() -> None:
    (host,) = get_channel_layer().hosts
    assert host["socket_timeout"] > RedisChannelLayer.brpop_timeout


async def say(group: str, kind: str) -> None:
    layer = get_channel_layer()
    assert layer is not None
    await layer.group_send(group, {"type": kind})


async def test_the_state_is_sent_again_when_redis_was_away(run: Run, cookies: dict[str, bytes]) -> None:
    async with listening(f"/ws/runs/{run.pk}/", cookies["owner"]) as opened:
        await opened.receive_json_from()
        await change(run, sent=4, sending=0)
        await say(live.run_group(run.pk), "live.again")
        assert (await hear(opened, "run"))["text"]["sent"] == "4"


async def test_access_is_checked_again_when_redis_was_away(
    run: Run, cookies: dict[str, bytes], mate: User
) -> None:
    opened = socket(f"/ws/runs/{run.pk}/", cookies["mate"])
    assert (await opened.connect())[0]
    await leave_unheard(mate)
    await say(live.run_group(run.pk), "live.again")
    assert await closed_with(opened) == 4403


async def test_a_page_is_let_go_to_ask_by_itself_while_redis_stays_away(
    run: Run, cookies: dict[str, bytes]
) -> None:
    opened = socket(f"/ws/runs/{run.pk}/", cookies["owner"])
    assert (await opened.connect())[0]
    await say(live.run_group(run.pk), "live.away")
    assert await closed_with(opened) == 1013


async def test_no_socket_is_opened_while_redis_is_away(
    cookies: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(_self: LiveLayer, _group: str, _channel: str) -> None:
        raise RedisConnectionError("Redis is away.")

    monkeypatch.setattr(LiveLayer, "group_add", away)
    assert await refused("/ws/me/", cookies["owner"]) == 1013


def watchers(run: Run) -> int:
    return int(client().zcard(f"{django_settings.LIVE_PREFIX}:group:{live.run_group(run.pk)}"))


async def test_a_socket_that_breaks_leaves_its_groups(
    run: Run, cookies: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(_self: LiveConsumer, _event: object) -> None:
        assert await database_sync_to_async(watchers)(run) == 1
        raise OSError("PostgreSQL is away.")

    monkeypatch.setattr(LiveConsumer, "run_changed", broken)
    opened = socket(f"/ws/runs/{run.pk}/", cookies["owner"])
    await opened.connect()
    await say(live.run_group(run.pk), "run.changed")
    with pytest.raises(OSError, match="PostgreSQL is away"):
        await opened.wait()
    assert await database_sync_to_async(watchers)(run) == 0


async def test_a_change_is_announced_as_soon_as_redis_is_back(
    run: Run, cookies: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    sift, times = live._sift, []

    def away_at_first(changes: list[live.Change]) -> tuple[list[live.Change], set[live.Change]]:
        times.append(len(changes))
        if len(times) == 1:
            raise RedisConnectionError("Redis is away.")
        return sift(changes)

    monkeypatch.setattr(live, "_sift", away_at_first)
    async with listening(f"/ws/runs/{run.pk}/", cookies["owner"]) as opened:
        await opened.receive_json_from()
        await change(run, sent=4, sending=0)
        live.run_changed(run.pk, run.owner_id)
        assert (await hear(opened, "run"))["text"]["sent"] == "4"


async def lived(opened: WebsocketCommunicator) -> None:
    """Wait until the socket's application ended, and raise what it ended with."""
    await opened.connect()
    await opened.wait()


async def test_a_socket_that_broke_leaves_its_place(
    owner: User, cookies: dict[str, bytes], settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A socket that ends with an error, as when Redis goes away, does not disconnect properly."""

    async def gone(_self: RedisChannelLayer, _channel: str) -> None:
        raise ConnectionError("Redis is away.")

    settings.SOCKETS_PER_PERSON = 1
    places.cache_clear()
    with monkeypatch.context() as broken:
        broken.setattr(RedisChannelLayer, "receive", gone)
        opened = socket("/ws/me/", cookies["owner"])
        with pytest.raises(ConnectionError):
            await lived(opened)
    assert places().taken(owner.pk) == 0
    async with listening("/ws/me/", cookies["owner"]):
        assert places().taken(owner.pk) == 1


async def test_a_socket_whose_state_cannot_be_read_leaves_its_place(
    owner: User, cookies: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(_self: LiveConsumer) -> list[Any]:
        raise OSError("PostgreSQL is away.")

    with monkeypatch.context() as away:
        away.setattr("activity.live.consumers.MyConsumer.state", broken)
        with pytest.raises(OSError, match="PostgreSQL is away"):
            await socket("/ws/me/", cookies["owner"]).connect()
    assert places().taken(owner.pk) == 0
    async with listening("/ws/me/", cookies["owner"]):
        assert places().taken(owner.pk) == 1


@pytest.mark.parametrize(("required", "connected"), [("everybody", False), ("staff", True), ("nobody", True)])
async def test_who_has_to_add_a_second_factor_first_hears_nothing(
    owner: User, settings: Settings, required: str, connected: bool
) -> None:
    settings.REQUIRE_MFA = required
    opened = socket("/ws/me/", await database_sync_to_async(cookie_of)(owner))
    assert (await opened.connect())[0] is connected
    await opened.disconnect()
