"""The answers to requests, and the lines of the log about them."""

from typing import Any

import pytest

from sandbox import gateway
from sandbox.account import State
from sandbox.media import MAX_UPLOAD_BYTES, Upload
from sandbox.verdict import Fault
from tests.sandbox.conftest import Desk


def upload(desk: Desk, handle: str = "media-1", *, size: int = 3, account: str = "a") -> gateway.Reply:
    file = Upload(handle=handle, account=account, filename="f.png", content_type="image/png", size=size)
    return desk.gateway.upload(
        at=desk.at, name=account, authorization="Bearer t", upload=file, content=b"png"
    )


def test_a_message_is_delivered_and_logged(desk: Desk) -> None:
    reply = desk.send(to="g", text="Grüße 👋", key="k")
    [line] = desk.lines
    assert reply.status == 201
    assert reply.payload == {"id": line["id"]}
    assert (line["at"], line["account"], line["kind"], line["to"]) == (1_000_000, "a", "message", "g")
    assert (line["text"], line["chars"], line["key"]) == ("Grüße 👋", 7, "k")
    assert (line["delivered"], line["duplicate"], line["status"], line["fault"]) == (True, False, 201, "")


def test_the_first_token_wins(desk: Desk) -> None:
    assert desk.send(token="first").status == 201
    assert desk.send(token="second").status == 401
    assert desk.send(token="first").status == 201
    assert [line["delivered"] for line in desk.lines] == [True, False, True]


@pytest.mark.parametrize("header", ["", "t", "Basic t", "Bearer ", "Bearer"])
def test_without_a_token_nothing_goes(desk: Desk, header: str) -> None:
    reply = desk.gateway.message(at=1, name="a", authorization=header, key="", body=b"{}")
    assert reply.status == 401
    assert "a" not in desk.gateway.accounts


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"\xff",
        b'{"to": "g"}',
        b'{"text": "x"}',
        b'{"to": 5, "text": "x"}',
        b'{"to": "g", "text": []}',
    ],
)
def test_what_cannot_be_understood_is_refused_and_logged(desk: Desk, body: bytes) -> None:
    assert desk.post(body).status == 400
    assert [(line["status"], line["delivered"]) for line in desk.lines] == [(400, False)]


def test_a_text_that_is_too_long_is_refused(desk: Desk) -> None:
    assert desk.send(text="x" * 65_536).status == 201
    assert desk.send(text="x" * 65_537).status == 422


def test_the_log_holds_the_start_of_a_long_text(desk: Desk) -> None:
    desk.send(text="x" * 5000)
    assert len(desk.lines[0]["text"]) == 200
    assert desk.lines[0]["chars"] == 5000


def test_half_a_character_can_be_logged(desk: Desk) -> None:
    assert desk.post(b'{"to": "g", "text": "\\ud83d"}', key="\udc80").status == 201
    assert desk.lines[0]["text"] == "\ud83d"


# Idempotency


def test_the_same_key_gives_the_same_id_and_delivers_once(desk: Desk) -> None:
    first, second = desk.send(key="k"), desk.send(key="k")
    assert first.payload == second.payload
    assert [(line["delivered"], line["duplicate"]) for line in desk.lines] == [(True, False), (False, True)]


def test_where_keys_are_ignored_a_second_post_is_delivered_again(desk: Desk) -> None:
    desk.behave(idempotent=False)
    first, second = desk.send(key="k"), desk.send(key="k")
    assert first.payload != second.payload
    assert [line["delivered"] for line in desk.lines] == [True, True]
    assert [line["key"] for line in desk.lines] == ["k", "k"]


def test_a_reference_is_logged_and_does_nothing(desk: Desk) -> None:
    desk.send(reference="r")
    desk.send(reference="r")
    assert [(line["key"], line["delivered"]) for line in desk.lines] == [("r", True), ("r", True)]


def test_a_key_whose_message_was_refused_can_be_used_again(desk: Desk) -> None:
    desk.behave(error_rate=1.0)
    desk.send(key="k")
    desk.behave()
    assert desk.send(key="k").status == 201
    assert [line["delivered"] for line in desk.lines] == [False, True]


def test_a_key_whose_message_hung_undelivered_can_be_used_again(desk: Desk) -> None:
    desk.behave(hang=1.0, hang_delivers=False)
    desk.send(key="k")
    desk.behave()
    desk.send(key="k")
    assert [line["delivered"] for line in desk.lines] == [False, True]


def test_keys_chats_and_handles_survive_a_restart(desk: Desk) -> None:
    upload(desk)
    first = desk.send(key="k", text="x" * 500)
    desk.send(key="not honoured", reference="r")
    desk.restart()

    assert desk.send(key="k").payload == first.payload
    assert desk.lines[-1]["duplicate"]
    assert desk.send(media="media-1", caption="look").status == 201
    chat = desk.gateway.chats.get("a", "g")
    assert chat is not None
    assert chat.total == 3
    assert chat.bubbles[0].text == "x" * 200 + " …"


def test_a_key_that_was_ignored_before_a_restart_is_new_after_it(desk: Desk) -> None:
    desk.behave(idempotent=False)
    desk.send(key="k")
    desk.restart()
    desk.send(key="k")
    assert [line["delivered"] for line in desk.lines] == [True, True]


@pytest.mark.parametrize("everything", [True, False])
def test_what_was_forgotten_stays_forgotten_after_a_restart(desk: Desk, everything: bool) -> None:
    desk.send(key="k")
    if everything:
        desk.gateway.reset()
    else:
        desk.gateway.forget("a")
    desk.restart()
    assert desk.gateway.accounts == {}
    assert desk.send(key="k", token="another").status == 201
    assert desk.lines[-1]["delivered"]


def test_more_accounts_than_there_can_be_are_refused(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gateway, "MAX_ACCOUNTS", 1)
    assert desk.send(account="a").status == 201
    assert desk.send(account="b").status == 403


# Media


def test_an_upload_is_logged_with_its_size(desk: Desk) -> None:
    reply = upload(desk, size=3)
    [line] = desk.lines
    assert (reply.status, reply.payload) == (201, {"handle": "media-1"})
    assert (line["kind"], line["media"], line["bytes"], line["type"]) == ("media", "media-1", 3, "image/png")


@pytest.mark.parametrize(("size", "status"), [(0, 400), (MAX_UPLOAD_BYTES + 1, 413)])
def test_a_file_without_sense_is_refused(desk: Desk, size: int, status: int) -> None:
    assert upload(desk, size=size).status == status
    assert desk.lines[0]["status"] == status


def test_a_handle_of_another_account_is_unknown(desk: Desk) -> None:
    upload(desk, account="b")
    reply = desk.send(media="media-1", caption="stolen")
    assert (reply.status, reply.payload["error"]) == (422, "unknown_media")


# Behaviours


@pytest.mark.parametrize(
    ("wishes", "status", "delivered", "fault"),
    [
        ({"error_rate": 1.0}, 500, False, Fault.NONE),
        ({"error_rate_after": 1.0}, 500, True, Fault.NONE),
        ({"not_connected": True}, 503, False, Fault.NONE),
        ({"reject": frozenset({"g"})}, 422, False, Fault.NONE),
        ({"unknown": frozenset({"g"})}, 404, False, Fault.NONE),
        ({"hang": 1.0}, 0, True, Fault.HANG),
        ({"hang": 1.0, "hang_delivers": False}, 0, False, Fault.HANG),
        ({"cut": 1.0}, 201, True, Fault.CUT),
        ({"garbage": 1.0}, 200, True, Fault.GARBAGE),
    ],
)
def test_each_behaviour_does_what_it_says(
    desk: Desk, wishes: dict[str, Any], status: int, delivered: bool, fault: Fault
) -> None:
    desk.behave(**wishes)
    reply = desk.send()
    [line] = desk.lines
    assert (reply.status, reply.fault) == (status, fault)
    assert (line["status"], line["delivered"], line["fault"]) == (status, delivered, fault)


def test_only_the_error_before_accepting_says_that_nothing_was_accepted(desk: Desk) -> None:
    desk.behave(error_rate=1.0)
    assert desk.send().payload["accepted"] is False
    desk.behave(error_rate_after=1.0)
    assert "accepted" not in desk.send().payload


def test_the_rate_limit_counts_what_was_accepted_and_says_when_there_is_room(desk: Desk) -> None:
    desk.behave(rate_limit=2)
    replies = []
    for at in (0, 10_000, 20_000, 30_500, 59_999, 60_000):
        desk.at = at
        replies.append(desk.send())
    assert [(reply.status, reply.retry_after) for reply in replies] == [
        (201, 0),
        (201, 0),
        (429, 40),
        (429, 30),
        (429, 1),
        (201, 0),
    ]


def test_a_banned_account_stays_banned(desk: Desk) -> None:
    desk.behave(ban_above_per_minute=1)
    statuses = []
    for at in (0, 1, 2, 10**9):
        desk.at = at
        statuses.append(desk.send().status)
    assert statuses == [201, 403, 403, 403]
    assert desk.gateway.accounts["a"].state is State.BANNED


def test_refused_messages_count_for_the_hidden_limit(desk: Desk) -> None:
    desk.behave(ban_above_per_minute=1, error_rate=1.0)
    assert [desk.send().status for _ in range(2)] == [500, 403]


def test_latency_lies_between_its_bounds(desk: Desk) -> None:
    desk.behave(latency_ms=100, jitter_ms=50)
    delays = [desk.send().delay for _ in range(50)]
    assert 0.1 <= min(delays) < max(delays) <= 0.15


def test_a_rate_is_a_share_of_the_requests(desk: Desk) -> None:
    desk.behave(error_rate=0.3, seed=1)
    failed = sum(desk.send().status == 500 for _ in range(500))
    assert 100 < failed < 200


def test_the_same_seed_fails_the_same_requests(desk: Desk) -> None:
    for account in ("a", "b"):
        desk.behave(account, error_rate=0.5, seed=9)
    first, second = ([desk.send(account=account).status for _ in range(40)] for account in ("a", "b"))
    assert first == second
    assert set(first) == {201, 500}
