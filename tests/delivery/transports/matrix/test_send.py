"""Matrix against a real homeserver, with its limits on."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any
from urllib.parse import quote

import aiohttp
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from delivery.outcomes import AccountBlocked, RateLimited, Rejected, Sent, ServerError, Unknown, Unreachable
from delivery.transports.base import (
    AccountState,
    CredentialsError,
    Inbound,
    Message,
    UnansweredError,
    Uploaded,
)
from delivery.transports.http.exchange import Answer, open_session
from delivery.transports.matrix import reports, rooms, send
from delivery.transports.matrix.send import MatrixTransport
from tests.delivery.transports.contract import GroupContract, HandleContract, KeyContract, TransportContract
from tests.delivery.transports.harness import SECRET, photo, picture, port_without_server
from tests.delivery.transports.homeserver import CLIENT, Homeserver
from tests.delivery.transports.synapse import DOMAIN, Synapse
from tests.delivery.transports.webhooks import JUNK, spoil

pytestmark = pytest.mark.xdist_group("synapse")  # one homeserver is enough


@pytest.fixture
async def home(synapse: Synapse) -> AsyncIterator[Homeserver]:
    async with Homeserver(synapse) as home:
        yield home


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with open_session() as session:
        yield session


@pytest.fixture
def transport(home: Homeserver, session: aiohttp.ClientSession) -> MatrixTransport:
    return MatrixTransport(home.credentials(), session)


def said(home: Homeserver, words: str = "The bus leaves at nine.") -> Message:
    return Message(address=home.address, kind="text", text=words)


class TestMatrix(TransportContract, KeyContract, HandleContract, GroupContract):
    service = Homeserver

    @pytest.fixture
    def harness(self, home: Homeserver) -> Homeserver:
        return home


class TestPace:
    async def test_a_refused_message_goes_out_after_the_wait_that_was_named(
        self, home: Homeserver, transport: MatrixTransport, synapse: Synapse
    ) -> None:
        synapse.ask(
            "DELETE",
            f"/_synapse/admin/v1/users/{home.user_id}/override_ratelimit",
            token=synapse.admin_token,
        )  # so that the limits of the homeserver hold
        for number in range(20):
            outcome = await transport.send(said(home), f"k{number}")
            if not isinstance(outcome, Sent):
                break
        assert isinstance(outcome, RateLimited)
        assert outcome.after is not None
        assert 0 < outcome.after < 2

        await asyncio.sleep(outcome.after)
        assert isinstance(await transport.send(said(home), f"k{number}"), Sent)
        assert [received.key for received in home.received()] == [f"k{each}" for each in range(number + 1)]


class TestOnce:
    @pytest.mark.parametrize("by", ["password", "access_token"])
    async def test_the_same_key_is_the_same_message_even_after_a_kill(
        self, home: Homeserver, session: aiohttp.ClientSession, synapse: Synapse, by: str
    ) -> None:
        credentials = home.credentials()
        if by == "access_token":
            credentials = {"base_url": credentials["base_url"], "access_token": home.token}
        first = await MatrixTransport(credentials, session).send(said(home), "same")
        synapse.kill()
        synapse.start()
        send._tokens.clear()  # as in another worker, which has to log in itself
        again = await MatrixTransport(credentials, session).send(said(home, "Other words"), "same")

        assert isinstance(first, Sent)
        assert again == first
        assert [received.text for received in home.received()] == ["The bus leaves at nine."]

    async def test_while_the_homeserver_is_down_nothing_is_lost_or_doubled(
        self, home: Homeserver, session: aiohttp.ClientSession, synapse: Synapse
    ) -> None:
        direct = {**home.credentials(), "base_url": f"http://127.0.0.1:{synapse.port}"}
        transport = MatrixTransport(direct, session)
        assert isinstance(await transport.send(said(home), "k0"), Sent)
        synapse.kill()
        down = await transport.send(said(home), "k1")
        synapse.start()
        # Unknown where it was written to the connection that stood: a room event has a key, so it is sent again.
        assert isinstance(down, Unreachable | Unknown)
        assert isinstance(await transport.send(said(home), "k1"), Sent)
        assert len(home.received()) == 2


class TestLogin:
    async def test_many_messages_take_one_login(
        self, home: Homeserver, transport: MatrixTransport, session: aiohttp.ClientSession
    ) -> None:
        await asyncio.gather(*(transport.send(said(home), f"k{number}") for number in range(5)))
        await MatrixTransport(home.credentials(), session).send(said(home), "k5")
        assert home.logins == 1

    async def test_a_token_that_was_taken_back_is_replaced_where_there_is_a_password(
        self, home: Homeserver, transport: MatrixTransport, synapse: Synapse
    ) -> None:
        await transport.send(said(home), "first")
        synapse.ask("POST", f"{CLIENT}/logout/all", {}, token=home.token)
        assert isinstance(await transport.send(said(home), "second"), Sent)
        assert home.logins == 2

    async def test_without_a_password_a_token_that_was_taken_back_stops_the_account(
        self, home: Homeserver, session: aiohttp.ClientSession, synapse: Synapse
    ) -> None:
        credentials = {"base_url": home.credentials()["base_url"], "access_token": home.token}
        transport = MatrixTransport(credentials, session)
        assert await transport.status() is AccountState.WORKING
        synapse.ask("POST", f"{CLIENT}/logout", {}, token=home.token)
        outcome = await transport.send(said(home), "k")
        assert isinstance(outcome, AccountBlocked)
        assert home.token not in outcome.reason
        assert await transport.status() is AccountState.BLOCKED

    async def test_a_password_buys_a_token_that_is_kept_instead(
        self, home: Homeserver, transport: MatrixTransport, session: aiohttp.ClientSession
    ) -> None:
        kept = await transport.log_in()
        assert kept is not None
        assert (kept["user"], kept["password"]) == (home.user_id, "")
        other = MatrixTransport(kept, session)
        assert isinstance(await other.send(said(home), "k"), Sent)
        assert await other.log_in() is None
        assert home.logins == 1

        with pytest.raises(UnansweredError) as raised:
            await MatrixTransport(home.wrong_credentials(), session).log_in()
        assert isinstance(raised.value.outcome, AccountBlocked)

    def test_it_takes_a_token_or_a_user_and_a_password(self) -> None:
        for told in ({}, {"user": "a"}, {"password": "p"}):
            with pytest.raises(CredentialsError, match="Access token is missing"):
                MatrixTransport({"base_url": "https://matrix.example", **told}, None)


class TestFiles:
    @pytest.mark.parametrize(
        ("content_type", "shown_as"),
        [
            ("image/png", "m.image"),
            ("video/mp4", "m.video"),
            ("audio/ogg", "m.audio"),
            ("text/csv", "m.file"),
        ],
    )
    async def test_a_file_is_shown_as_what_it_is(
        self, home: Homeserver, transport: MatrixTransport, content_type: str, shown_as: str
    ) -> None:
        uploaded = await transport.upload(replace(photo(), content_type=content_type))
        assert isinstance(uploaded, Uploaded)
        message = picture(home.address, replace(photo(), content_type=content_type), handle=uploaded.handle)
        assert isinstance(await transport.send(replace(message, text=""), "k"), Sent)
        [content] = home.contents()
        assert (content["msgtype"], content["body"], content["filename"]) == (
            shown_as,
            "Fête été.png",
            "Fête été.png",
        )

    async def test_a_file_that_the_homeserver_finds_too_large_is_not_sent(
        self, transport: MatrixTransport
    ) -> None:
        refused = await transport.upload(photo(bytes(6 * 2**20)))
        assert isinstance(refused, Rejected | ServerError)  # it may hang up instead of saying so


class TestRooms:
    async def test_rooms_are_named_by_their_name_their_alias_or_else_their_id(
        self, home: Homeserver, transport: MatrixTransport
    ) -> None:
        alias = home.make_room(alias="named")
        nameless = home.make_room()
        contacts = {contact.address: contact.name async for contact in transport.recipients()}
        assert contacts == {
            home.address: "Grüße 👋🏽",
            alias: f"#named-{home.localpart}:{DOMAIN}",
            nameless: nameless,
        }

    async def test_a_room_is_found_by_its_alias(self, home: Homeserver, transport: MatrixTransport) -> None:
        home.address = home.make_room(alias="choir")  # type: ignore[misc]
        message = replace(said(home, "Rehearsal"), address=f"#choir-{home.localpart}:{DOMAIN}")
        assert isinstance(await transport.send(message, "k1"), Sent)
        assert isinstance(await transport.send(message, "k2"), Sent)
        assert [received.text for received in home.received()] == ["Rehearsal", "Rehearsal"]

    async def test_an_alias_that_nobody_has_is_refused_for_good(
        self, home: Homeserver, transport: MatrixTransport
    ) -> None:
        message = replace(said(home), address=f"#nobody:{DOMAIN}")
        outcome = await transport.send(message, "k")
        assert isinstance(outcome, Rejected)
        assert outcome.code == "M_NOT_FOUND"

    async def test_a_person_is_no_room(self, home: Homeserver, transport: MatrixTransport) -> None:
        outcome = await transport.send(replace(said(home), address=home.user_id), "k")
        assert isinstance(outcome, Rejected)
        assert "use the room you share" in outcome.reason


class TestRoomsThatTakeNoMessages:
    async def test_an_encrypted_room_is_refused_with_the_reason(
        self, home: Homeserver, transport: MatrixTransport
    ) -> None:
        home.address = home.make_room("Secret", encrypted=True)  # type: ignore[misc]
        outcome = await transport.send(said(home), "k")
        assert isinstance(outcome, Rejected)
        assert "the room is encrypted" in outcome.reason
        assert home.received() == []

    async def test_a_room_that_became_encrypted_is_noticed(
        self, home: Homeserver, transport: MatrixTransport, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        assert isinstance(await transport.send(said(home), "k1"), Sent)
        home.encrypt(home.address)
        monkeypatch.setattr(rooms, "BELIEVED_FOR", 0.0)
        assert isinstance(await transport.send(said(home), "k2"), Rejected)
        assert len(home.received()) == 1

    async def test_a_room_is_asked_about_once_in_a_while_only(
        self, home: Homeserver, transport: MatrixTransport
    ) -> None:
        for number in range(3):
            assert isinstance(await transport.send(said(home), f"k{number}"), Sent)
        assert len([path for path in home.asked if "/state/" in path]) == 2

    async def test_a_space_is_no_room(self, home: Homeserver, transport: MatrixTransport) -> None:
        space = home.make_room("All of the school", space=True)
        contacts = [contact.address async for contact in transport.recipients()]
        assert contacts == [home.address]
        outcome = await transport.send(replace(said(home), address=space), "k")
        assert isinstance(outcome, Rejected)
        assert "this is a space" in outcome.reason

    async def test_encrypted_rooms_are_listed_as_such(
        self, home: Homeserver, transport: MatrixTransport
    ) -> None:
        secret = home.make_room("Secret", encrypted=True)
        contacts = {contact.address: contact.problem async for contact in transport.recipients()}
        assert contacts == {home.address: "", secret: "encrypted"}

    async def test_while_the_room_cannot_be_asked_about_nothing_is_sent(
        self, home: Homeserver, session: aiohttp.ClientSession
    ) -> None:
        with port_without_server() as port:
            credentials = {"base_url": f"http://127.0.0.1:{port}", "access_token": SECRET}
            outcome = await MatrixTransport(credentials, session).send(said(home), "k")
        assert isinstance(outcome, Unreachable)


class TestReplies:
    @pytest.fixture
    async def friend(self, home: Homeserver, synapse: Synapse) -> AsyncIterator[Homeserver]:
        """Another user in the same room."""
        async with Homeserver(synapse) as friend:
            home.invite(friend)
            yield friend

    async def test_what_others_write_comes_once_and_in_order(
        self, home: Homeserver, transport: MatrixTransport, friend: Homeserver
    ) -> None:
        friend.say(home.address, "long ago")
        start = await transport.poll("")
        assert start.events == ()

        await transport.send(said(home), "our own")
        first, second = friend.say(home.address, "Yes!"), friend.say(home.address, "STOP")
        polled = await transport.poll(start.since)
        assert [
            (event.event_id, event.sender, event.chat, event.text)
            for event in polled.events
            if isinstance(event, Inbound)
        ] == [
            (first, friend.user_id, home.address, "Yes!"),
            (second, friend.user_id, home.address, "STOP"),
        ]
        assert (await transport.poll(polled.since)).events == ()

    async def test_an_answer_is_told_without_what_it_quotes_and_an_edit_is_none(
        self, home: Homeserver, transport: MatrixTransport, friend: Homeserver
    ) -> None:
        start = await transport.poll("")
        asked = friend.say(home.address, "Well")
        friend.say(
            home.address,
            "> <@a:b> The bus\n> leaves\n\nSTOP",
            **{"m.relates_to": {"m.in_reply_to": {"event_id": asked}}},
        )
        friend.say(home.address, "* Good", **{"m.relates_to": {"rel_type": "m.replace", "event_id": asked}})
        polled = await transport.poll(start.since)
        assert [event.text for event in polled.events if isinstance(event, Inbound)] == ["Well", "STOP"]

    async def test_a_notice_and_what_clients_say_to_each_other_is_no_reply(
        self, home: Homeserver, transport: MatrixTransport, friend: Homeserver
    ) -> None:
        start = await transport.poll("")
        friend.say(home.address, "The bridge is back", msgtype="m.notice")
        friend.say(home.address, "Let us verify", msgtype="m.key.verification.request")
        gone = friend.say(home.address, "A mistake")
        friend.ask("PUT", f"rooms/{quote(home.address)}/redact/{quote(gone)}/t1", {})
        friend.say(home.address, "waves", msgtype="m.emote")
        friend.say(home.address, "photo.jpg", msgtype="m.image", url="mxc://x/y")
        polled = await transport.poll(start.since)
        assert [event.text for event in polled.events if isinstance(event, Inbound)] == ["waves", "photo.jpg"]

    async def test_a_room_with_one_other_person_is_direct(
        self, home: Homeserver, transport: MatrixTransport, friend: Homeserver, synapse: Synapse
    ) -> None:
        start = await transport.poll("")
        friend.say(home.address, "STOP")
        polled = await transport.poll(start.since)
        assert [event.direct for event in polled.events if isinstance(event, Inbound)] == [True]

        async with Homeserver(synapse) as third:
            home.invite(third)
            friend.say(home.address, "STOP")
            shared = await transport.poll(polled.since)
            assert [event.direct for event in shared.events if isinstance(event, Inbound)] == [False]

            # A bridge is there too, and the user's clients know whom the room is with.
            listed = {friend.user_id: [home.address]}
            home.ask("PUT", f"user/{quote(home.user_id)}/account_data/m.direct", listed)
            friend.say(home.address, "STOP")
            bridged = await transport.poll(shared.since)
            assert [event.direct for event in bridged.events if isinstance(event, Inbound)] == [True]

    async def test_where_to_go_on_that_the_homeserver_does_not_know_is_a_beginning(
        self, transport: MatrixTransport
    ) -> None:
        polled = await transport.poll("of another homeserver")
        assert polled.events == ()
        assert (await transport.poll(polled.since)).events == ()

    async def test_a_homeserver_that_does_not_answer_is_no_news(self, session: aiohttp.ClientSession) -> None:
        with port_without_server() as port:
            credentials = {"base_url": f"http://127.0.0.1:{port}", "access_token": SECRET}
            with pytest.raises(UnansweredError):
                await MatrixTransport(credentials, session).poll("")


SYNCED = {
    "next_batch": "s72595_4483_1934",
    "rooms": {
        "join": {
            "!choir:matrix.example": {
                "timeline": {
                    "limited": False,
                    "events": [
                        {
                            "type": "m.room.message",
                            "event_id": "$1",
                            "sender": "@anna:matrix.example",
                            "origin_server_ts": 1_763_467_140_000,
                            "content": {
                                "msgtype": "m.text",
                                "body": "> <@us:matrix.example> Hello\n\nSTOP",
                                "m.relates_to": {"m.in_reply_to": {"event_id": "$0"}},
                            },
                        },
                        {"type": "m.room.message", "event_id": "$2", "sender": "@us:matrix.example"},
                    ],
                }
            }
        }
    },
}


class TestWhatHomeserversMaySay:
    def test_any_answer_to_a_sync_breaks_nothing(self) -> None:
        @settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
        @given(data=st.data())
        def spoiled(data: st.DataObject) -> None:
            found = json.loads(json.dumps(SYNCED))
            for _ in range(data.draw(st.integers(1, 3))):
                spoil(found, data)
            assert all(event.event_id for event in reports.events(found, own="@us:matrix.example"))

        spoiled()

    @pytest.mark.parametrize("told", [10**400, -(10**400), 1e308, float("nan"), True, "1", None])
    def test_a_time_that_is_none_is_now(self, told: Any) -> None:
        found = json.loads(json.dumps(SYNCED))
        found["rooms"]["join"]["!choir:matrix.example"]["timeline"]["events"][0]["origin_server_ts"] = told
        assert [event.text for event in reports.events(found, own="@us:matrix.example")] == ["STOP"]

    @settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(JUNK)
    def test_any_list_of_rooms_and_members_breaks_nothing(self, told: Any) -> None:
        assert reports.direct_rooms({"@anna:matrix.example": told, "@b:c": ["!room:a"]}) >= {"!room:a"}
        assert reports.direct_rooms(told) >= set()
        assert reports.others_in({"joined": told}, own="@us:matrix.example") >= 0


@pytest.mark.parametrize("status", [403, 404, 405])
def test_a_refusal_without_a_name_is_not_the_homeserver_s_and_fails_no_room(status: int) -> None:
    """A proxy or a web server stands in for it: nobody in the room is at fault."""
    transport = MatrixTransport({"base_url": "https://matrix.example", "access_token": "t"}, None)
    page = Answer(status=status, headers={}, body=b"<html><h1>No</h1></html>")
    assert isinstance(transport.parse_failure(page), Unreachable)
    named = Answer(status=status, headers={}, body=b'{"errcode": "M_FORBIDDEN", "error": "not in room"}')
    assert isinstance(transport.parse_failure(named), Rejected)
