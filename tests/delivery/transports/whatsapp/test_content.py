"""The words of WhatsApp messages, as gateways pass them on; none where no person wrote."""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from delivery.transports.whatsapp.content import NO_REPLY, WRAPPERS, said
from tests.delivery.transports.webhooks import JUNK

# The key that a member's phone gives to a group, beside its first words there.
KEY = {"groupId": "120363000000000001@g.us", "axolotlSenderKeyDistributionMessage": "MwjW"}
CONTEXT = {"deviceListMetadata": {"senderKeyHash": "4rE="}, "deviceListMetadataVersion": 2}
FLOW = json.dumps({"id": "stop", "display_text": "Stop", "flow_token": "unused"})

WORDS: list[tuple[Any, str]] = [
    ({"conversation": "STOP"}, "STOP"),
    ({"conversation": "STOP", "messageContextInfo": CONTEXT}, "STOP"),
    (
        {"senderKeyDistributionMessage": KEY, "messageContextInfo": CONTEXT, "conversation": "STOP"},
        "STOP",
    ),
    ({"extendedTextMessage": {"text": "STOP", "contextInfo": {"stanzaId": "3EB0"}}}, "STOP"),
    ({"ephemeralMessage": {"message": {"extendedTextMessage": {"text": "STOP"}}}}, "STOP"),
    ({"ephemeralMessage": {"message": {"conversation": "STOP"}}}, "STOP"),
    ({"viewOnceMessage": {"message": {"imageMessage": {"caption": "STOP"}}}}, "STOP"),
    ({"viewOnceMessageV2": {"message": {"videoMessage": {"caption": "STOP"}}}}, "STOP"),
    ({"viewOnceMessageV2Extension": {"message": {"audioMessage": {"ptt": True}}}}, ""),
    (
        {
            "ephemeralMessage": {
                "message": {"viewOnceMessageV2": {"message": {"imageMessage": {"caption": "STOP"}}}}
            }
        },
        "STOP",
    ),
    (
        {
            "documentWithCaptionMessage": {
                "message": {"documentMessage": {"caption": "STOP", "title": "a.pdf"}}
            }
        },
        "STOP",
    ),
    ({"editedMessage": {"message": {"conversation": "STOP"}}}, "STOP"),
    ({"imageMessage": {"caption": "STOP", "mimetype": "image/jpeg"}}, "STOP"),
    ({"documentMessage": {"title": "a.pdf"}}, ""),
    ({"audioMessage": {"seconds": 3}}, ""),
    ({"stickerMessage": {}}, ""),
    ({"buttonsResponseMessage": {"selectedButtonId": "b1", "selectedDisplayText": "STOP"}}, "STOP"),
    ({"buttonsResponseMessage": {"selectedButtonId": "STOP"}}, "STOP"),
    ({"templateButtonReplyMessage": {"selectedId": "t1", "selectedDisplayText": "STOP"}}, "STOP"),
    ({"listResponseMessage": {"title": "STOP", "singleSelectReply": {"selectedRowId": "r1"}}}, "STOP"),
    ({"interactiveResponseMessage": {"body": {"text": "STOP"}}}, "STOP"),
    ({"interactiveResponseMessage": {"nativeFlowResponseMessage": {"paramsJson": FLOW}}}, "Stop"),
    ({"interactiveResponseMessage": {"nativeFlowResponseMessage": {"paramsJson": "{"}}}, ""),
    ({"aKindThatComesNextYear": {"text": "Hello"}}, ""),  # kept for a look
]

EDIT = {"type": "MESSAGE_EDIT", "key": {"id": "3A01"}, "editedMessage": {"conversation": "STOP"}}
NOTHING: list[Any] = [
    None,
    "STOP",
    [],
    {},
    {"conversation": None},
    {"messageContextInfo": CONTEXT},
    {"senderKeyDistributionMessage": KEY},
    {"senderKeyDistributionMessage": KEY, "messageContextInfo": CONTEXT},
    {"reactionMessage": {"key": {"id": "3EB0"}, "text": "👍"}},
    {"encReactionMessage": {}},
    {"protocolMessage": {"type": "REVOKE", "key": {"id": "3A01"}}},
    {"protocolMessage": EDIT},
    {"editedMessage": {"message": {"protocolMessage": EDIT}}},
    {"pollUpdateMessage": {"pollCreationMessageKey": {"id": "3EB0"}, "vote": {"encPayload": "x"}}},
    {"ephemeralMessage": {"message": {"reactionMessage": {"text": "👍"}}}},
    {"keepInChatMessage": {}},
    {"pinInChatMessage": {"type": "PIN_FOR_ALL"}},
    {"secretEncryptedMessage": {"secretEncType": "MESSAGE_EDIT"}},
]


@pytest.mark.parametrize(("content", "words"), WORDS)
def test_words_are_read_wherever_they_are(content: Any, words: str) -> None:
    assert said(content) == words


@pytest.mark.parametrize("content", NOTHING)
def test_what_nobody_wrote_is_no_reply(content: Any) -> None:
    assert said(content) is None


def test_wrappers_without_end_are_given_up() -> None:
    content: dict[str, Any] = {"conversation": "STOP"}
    for _ in range(500):
        content = {"ephemeralMessage": {"message": content}}
    assert said(content) == ""


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.dictionaries(
        st.sampled_from([*WRAPPERS, *sorted(NO_REPLY), *(path for content, _ in WORDS for path in content)]),
        JUNK | st.dictionaries(st.just("message"), JUNK),
        max_size=4,
    )
)
def test_any_content_is_words_or_no_reply(content: dict[str, Any]) -> None:
    found = said(content)
    assert found is None or isinstance(found, str)
