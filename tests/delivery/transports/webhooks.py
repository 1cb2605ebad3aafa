"""The contract of every kind with webhooks: it believes only fresh requests of its own service."""

import json
import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from delivery.transports.base import Inbound, InboundEvent, Transport, WebhookRefusedError, WebhookRequest
from tests.delivery.transports.contract import Stage
from tests.delivery.transports.harness import SECRET, Harness

NOW = datetime(2026, 11, 18, 12, 0, tzinfo=UTC)
WEBHOOK_SECRET = f"{SECRET}-which-is-long-enough-to-sign-with"
JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reported:
    """A report of a service, and the events that we read from it."""

    body: Mapping[str, Any]
    events: Sequence[InboundEvent]

    def __str__(self) -> str:
        return " and ".join(event.event_id for event in self.events) or "nothing"


class WebhookContract(Stage):
    """The contract of a kind whose service reports."""

    reports: ClassVar[Sequence[Reported]]
    for_others: ClassVar[Mapping[str, Any]]  # a good report of an account that is not ours
    fresh_for: ClassVar[timedelta | None] = None  # how old a report may be; None: it carries no time
    signs_body: ClassVar[bool] = True  # or only proves who it is
    # What is told as a message, and that nobody wrote to us: own words, reactions, edits, votes, notices.
    no_replies: ClassVar[Mapping[str, Mapping[str, Any]]]
    words: ClassVar[
        Mapping[str, Mapping[str, Any]]
    ]  # reports in which somebody says STOP, in each way there is

    def tables(self) -> dict[str, Sequence[object]]:
        no_replies = [pytest.param(body, id=name) for name, body in self.no_replies.items()]
        words = [pytest.param(body, id=name) for name, body in self.words.items()]
        return {**super().tables(), "reported": self.reports, "no_reply": no_replies, "stop": words}

    def headers(self, body: bytes, secret: str, made_at: datetime) -> dict[str, str]:
        """Return the headers of the request, with names in lower case."""
        raise NotImplementedError

    def body(self, report: Mapping[str, Any], made_at: datetime) -> bytes:
        return json.dumps(report).encode()

    def request(self, report: Mapping[str, Any], *, made_at: datetime = NOW) -> WebhookRequest:
        body = self.body(report, made_at)
        return WebhookRequest(
            headers=self.headers(body, WEBHOOK_SECRET, made_at),
            body=body,
            secret=WEBHOOK_SECRET,
            received_at=NOW,
        )

    @pytest.fixture
    def reader(self, harness: Harness) -> Transport:
        return harness.kind(harness.credentials(), None)

    def test_a_report_is_read(self, reader: Transport, reported: Reported) -> None:
        assert reader.parse_webhook(self.request(reported.body)) == list(reported.events)

    def test_what_nobody_wrote_is_no_reply(self, reader: Transport, no_reply: Mapping[str, Any]) -> None:
        events = reader.parse_webhook(self.request(no_reply))
        assert [event for event in events if isinstance(event, Inbound)] == []

    def test_words_are_read_wherever_they_are(self, reader: Transport, stop: Mapping[str, Any]) -> None:
        events = reader.parse_webhook(self.request(stop))
        assert [event.text for event in events if isinstance(event, Inbound)] == ["STOP"]

    def test_a_report_sent_again_has_the_same_ids_and_no_two_share_one(self, reader: Transport) -> None:
        ids = [
            [event.event_id for event in reader.parse_webhook(self.request(each.body))]
            for each in self.reports
        ]
        again = [
            [event.event_id for event in reader.parse_webhook(self.request(each.body))]
            for each in self.reports
        ]
        assert ids == again
        flat = [event_id for one in ids for event_id in one]
        assert all(flat)
        assert len(set(flat)) == len(flat)

    def test_a_changed_body_is_refused(self, reader: Transport) -> None:
        good = self.request(self.reports[0].body)
        changes = (good.body + b" ", good.body[:-1], b"", b"{}") if self.signs_body else (good.body[:-1], b"")
        for changed in changes:
            with pytest.raises(WebhookRefusedError):
                reader.parse_webhook(replace(good, body=changed))

    def test_another_secret_is_refused(self, reader: Transport) -> None:
        good = self.request(self.reports[0].body)
        for secret in ("", "another-secret-that-is-long-enough-to-sign-with"):
            headers = self.headers(good.body, secret or "x" * 32, NOW)
            with pytest.raises(WebhookRefusedError) as raised:
                reader.parse_webhook(replace(good, headers=headers))
            assert SECRET not in str(raised.value)

    def test_without_its_headers_it_is_refused(self, reader: Transport) -> None:
        good = self.request(self.reports[0].body)
        for told in ("", "sha256=", "é", "\ud83d", "Bearer ", "Bearer a.b.c"):
            with pytest.raises(WebhookRefusedError):
                reader.parse_webhook(replace(good, headers=dict.fromkeys(good.headers, told)))

    def test_an_old_report_is_refused(self, reader: Transport) -> None:
        report = self.reports[0].body
        if self.fresh_for is None:
            assert reader.parse_webhook(self.request(report, made_at=NOW - timedelta(days=30)))
            return
        almost = self.fresh_for - timedelta(seconds=5)
        assert reader.parse_webhook(self.request(report, made_at=NOW - almost))
        with pytest.raises(WebhookRefusedError):
            reader.parse_webhook(self.request(report, made_at=NOW - almost - timedelta(seconds=10)))

    def test_a_report_of_another_account_means_nothing_to_us(self, reader: Transport) -> None:
        assert reader.parse_webhook(self.request(self.for_others)) == []

    def test_no_secret_of_a_report_is_logged_or_shown(
        self, reader: Transport, caplog: pytest.LogCaptureFixture
    ) -> None:
        """Some services put the account's key into every report."""
        caplog.set_level(logging.DEBUG)
        told = []
        for report in self.reports:
            good = self.request({**report.body, "apikey": SECRET})
            told += [repr(good), repr(reader.parse_webhook(good))]
            with pytest.raises(WebhookRefusedError) as raised:
                reader.parse_webhook(replace(good, headers={}))
            told.append(repr(raised.value))
        assert SECRET not in " ".join(told) + caplog.text

    def test_signed_nonsense_breaks_nothing(self, reader: Transport) -> None:
        """Any part of a good report may be anything."""

        @settings(max_examples=60, deadline=None)
        @given(data=st.data())
        def spoiled(data: st.DataObject) -> None:
            known = [*(each.body for each in self.reports), *self.no_replies.values(), *self.words.values()]
            report = json.loads(json.dumps(data.draw(st.sampled_from(known))))
            for _ in range(data.draw(st.integers(1, 3))):
                spoil(report, data)
            try:
                events = reader.parse_webhook(self.request(report))
            except WebhookRefusedError:
                return
            assert all(event.event_id for event in events)

        spoiled()

    @pytest.mark.parametrize(
        "deep", [b"[" * 200_000, b'{"a":' * 100_000, b'{"data":' + b"[" * 900 + b"]" * 900 + b"}"]
    )
    def test_a_signed_body_without_bottom_breaks_nothing(self, reader: Transport, deep: bytes) -> None:
        headers = self.headers(deep, WEBHOOK_SECRET, NOW)
        request = WebhookRequest(headers=headers, body=deep, secret=WEBHOOK_SECRET, received_at=NOW)
        with suppress(WebhookRefusedError):
            assert reader.parse_webhook(request) == []

    def test_a_signed_body_of_anything_breaks_nothing(self, reader: Transport) -> None:
        @settings(max_examples=60, deadline=None)
        @given(body=st.binary(max_size=40) | JUNK.map(lambda value: json.dumps(value).encode()))
        def anything(body: bytes) -> None:
            headers = self.headers(body, WEBHOOK_SECRET, NOW)
            request = WebhookRequest(headers=headers, body=body, secret=WEBHOOK_SECRET, received_at=NOW)
            try:
                assert reader.parse_webhook(request) == []
            except WebhookRefusedError:
                return

        anything()


def spoil(value: Any, data: st.DataObject) -> None:
    """Put junk somewhere into the report."""
    while True:
        names = list(value) if isinstance(value, dict) else list(range(len(value)))
        if not names:
            return
        name = data.draw(st.sampled_from(names))
        if not isinstance(value[name], dict | list) or data.draw(st.integers(0, 3)) == 0:
            value[name] = data.draw(JUNK)
            return
        value = value[name]
