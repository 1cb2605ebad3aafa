"""The base of all transports that use HTTP: the order of the steps, and the meaning of a failed answer."""

import asyncio
import time
from abc import abstractmethod
from collections.abc import Mapping
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any, BinaryIO, ClassVar

from yarl import URL

from delivery.outcomes import (
    AccountBlocked,
    NotConnected,
    Outcome,
    RateLimited,
    Rejected,
    Sent,
    ServerError,
    TryAgain,
    Unknown,
    Unreachable,
)
from delivery.transports.base import (
    AccountState,
    FileAddress,
    Media,
    Message,
    Transport,
    UnansweredError,
    Uploaded,
)
from delivery.transports.http.exchange import (
    FOR_EVERYBODY,
    NOT_THE_SERVICE,
    STATUSES,
    Answer,
    Failure,
    Request,
    Unanswered,
    exchange,
    json_request,
    meaning,
    retry_after,
)
from delivery.transports.http.files import opened
from delivery.transports.http.reading import parsed, text
from delivery.transports.leaving import keep_back
from delivery.transports.networks.names import on_behalf_of


class HttpTransport(Transport):
    """The base of every kind that uses HTTP: build a request, exchange it, read the answer.

    A kind overrides the steps: `prepare`, which sets `headers`; `build_message` and `parse_sent`; `build_upload` and
    `parse_uploaded` where it has media handles, else `build_with_file`; `build_with_address` and `not_fetched` where
    its service fetches files; `ask_state`; `statuses`, `describe` or `parse_failure` where its service gives a status
    another meaning.
    """

    statuses: ClassVar[Mapping[int, Failure]] = STATUSES
    most_file_bytes: ClassVar[int] = 100 * 10**6
    headers: Mapping[str, str] = MappingProxyType({})  # for every request: mostly our authorization

    async def send(self, message: Message, key: str) -> Outcome:
        if message.media is None or self.capabilities.media_handles:
            return await self._send(self.build_message(message, key))
        if message.media.address is not None and self.capabilities.media_urls:
            outcome = await self._send_address(message, message.media, message.media.address, key)
            if outcome is not None:
                return outcome
        return await self._send_inside(message, message.media, key)

    async def _send_inside(self, message: Message, media: Media, key: str) -> Outcome:
        file = await opened(media, most_bytes=self.most_file_bytes)
        if isinstance(file, Rejected | TryAgain):
            return file
        with file:
            # In a thread, since this opens the file and may read all of it.
            request = await asyncio.to_thread(self.build_with_file, message, media, key, file)
            return await self._send(request, total=self.timeouts.upload)

    async def _send_address(
        self, message: Message, media: Media, address: FileAddress, key: str
    ) -> Outcome | None:
        """Send the message with the address of its file; return None where it has to go with the file inside.

        That is so only where the service said that it could not fetch the file: then nothing has left. Without such an
        answer the message is in doubt, as any other.
        """
        started = time.monotonic()
        request = self.build_with_address(message, media, key, address.url)
        # The service fetches the file before it answers, which takes as long as an upload.
        answer = await self.exchange(request, total=self.timeouts.upload)
        words = self.not_fetched(answer) if isinstance(answer, Answer) else ""
        if words:
            address.fetching.failed(self.safe(words))
            return self._too_late(started)
        outcome = self._read(answer)
        if isinstance(outcome, Sent):
            address.fetching.worked()
        elif isinstance(outcome, Unknown):
            address.fetching.in_doubt(outcome.reason)
        return outcome

    def _too_late(self, started: float) -> Outcome | None:
        """Hold the message back where too little time is left for the file itself; nothing of it has left."""
        if time.monotonic() - started < self.timeouts.upload / 2:
            return None
        keep_back("the gateway tried for long to fetch the file")
        return ServerError(reason="the gateway could not fetch the file")

    def _read(self, answer: Answer | Unanswered) -> Outcome:
        if not isinstance(answer, Answer):
            return answer
        return self.parse_sent(answer) if answer.ok else self.parse_failure(answer)

    async def _send(self, request: Request | Rejected, *, total: float | None = None) -> Outcome:
        if isinstance(request, Rejected):
            return request
        return self._read(await self.exchange(request, total=total))

    async def upload(self, media: Media) -> Uploaded | Outcome:
        if not self.capabilities.media_handles:
            return await super().upload(media)
        result = await self._upload(media)
        # No person sees an upload: one that may have arrived is simply repeated.
        return ServerError(reason=result.reason) if isinstance(result, Unknown) else result

    async def _upload(self, media: Media) -> Uploaded | Outcome:
        file = await opened(media, most_bytes=self.most_file_bytes)
        if isinstance(file, Rejected | TryAgain):
            return file
        with file:
            answer = await self.exchange(self.build_upload(media, file), total=self.timeouts.upload)
        if not isinstance(answer, Answer):
            return answer
        return self.parse_uploaded(answer) if answer.ok else self.parse_failed_upload(answer)

    async def ask(self, request: Request) -> dict[str, Any]:
        """Return the JSON object that answers a question; raise UnansweredError."""
        answer = await self.answered(request)
        found = answer.json()
        if not found:
            raise UnansweredError(self.unreadable(answer))
        return found

    async def ask_list(self, request: Request) -> list[Any]:
        """Return the JSON list that answers a question; raise UnansweredError."""
        answer = await self.answered(request)
        found = parsed(answer.body)
        if not isinstance(found, list):
            raise UnansweredError(self.unreadable(answer))
        return found

    async def answered(self, request: Request) -> Answer:
        """Return the answer to a question if its status is good; raise UnansweredError."""
        answer = await self.exchange(request)
        if not isinstance(answer, Answer):
            raise UnansweredError(answer, silent=True)
        if not answer.ok:
            raise UnansweredError(self.parse_failure(answer))
        return answer

    async def ask_for(self, request: Request, *path: str | int) -> str:
        """Return the text at the end of the path in the answer; raise UnansweredError, also where there is none."""
        answer = await self.answered(request)
        if found := text(answer.json(), *path):
            return found
        raise UnansweredError(self.unreadable(answer))

    async def answered_if_there(self, request: Request) -> Answer | None:
        """Return the answer to a question about a session; None where there is no session. Raise UnansweredError."""
        try:
            return await self.answered(request)
        except UnansweredError as error:
            if isinstance(error.outcome, NotConnected):
                return None
            raise

    def request(self, method: str, url: URL, payload: object = None) -> Request:
        """Return a request with our headers, and with JSON where there is a payload."""
        return json_request(method, url, headers=self.headers, payload=payload)

    async def exchange(self, request: Request, *, total: float | None = None) -> Answer | Unanswered:
        timeouts = self.timeouts
        with on_behalf_of(self.owner):
            return await exchange(
                self.session, request, connect=timeouts.connect, total=total or timeouts.total
            )

    @abstractmethod
    def build_message(self, message: Message, key: str) -> Request | Rejected:
        """Return the request that sends the message, or the outcome where there can be none."""

    @abstractmethod
    def parse_sent(self, answer: Answer) -> Outcome:
        """Read the answer of a service that took the message; `unreadable` where it cannot be read."""

    def build_with_file(self, message: Message, media: Media, key: str, file: BinaryIO) -> Request | Rejected:
        """Return the request that sends the message with its file; used only without media handles."""
        raise NotImplementedError

    def build_with_address(self, message: Message, media: Media, key: str, url: str) -> Request:
        """Return the request that sends the message with the address of its file; used only with media addresses."""
        raise NotImplementedError

    def not_fetched(self, answer: Answer) -> str:  # noqa: ARG002 (for kinds that have it)
        """Return the service's words if it says that it could not fetch the file, so that nothing left; else ''."""
        return ""

    def build_upload(self, media: Media, file: BinaryIO) -> Request:
        """Return the request that uploads the file; used only with media handles."""
        raise NotImplementedError

    def parse_uploaded(self, answer: Answer) -> Uploaded | Outcome:
        """Return the handle from the answer to an upload."""
        raise NotImplementedError

    def parse_failed_upload(self, answer: Answer) -> Uploaded | Outcome:
        """Return the outcome of an answer to an upload that is not 2xx."""
        return self.parse_failure(answer)

    def parse_failure(self, answer: Answer) -> Outcome:
        """Return the outcome of an answer that is not 2xx."""
        code, detail = self.describe(answer)
        reason = self.said(answer, detail or code)
        failure = meaning(answer.status, self.statuses)
        after = retry_after(answer, now=datetime.now(UTC))
        if failure is RateLimited or failure is NotConnected:
            return failure(after=after, reason=reason)
        if failure is ServerError:
            return ServerError(after=after, reason=reason, everybody=answer.status in FOR_EVERYBODY)
        if failure is Rejected and answer.status in NOT_THE_SERVICE and not answer.json():
            return Unreachable(
                reason=f"{reason}: another program answers there, not the service; check the address"
            )
        if failure is Rejected:
            return Rejected(reason=reason, code=self.safe(code) or str(answer.status))
        return failure(reason=reason)

    def describe(self, answer: Answer) -> tuple[str, str]:
        """Return the service's own code and words for a failure; empty where it has none."""
        found = answer.json()
        code, detail = found.get("error"), found.get("message")
        return code if isinstance(code, str) else "", detail if isinstance(detail, str) else ""

    async def ask_state(self) -> AccountState:
        """Ask the service for the account's state; raise UnansweredError."""
        raise NotImplementedError

    async def status(self) -> AccountState:
        """Return the account's state; a failed question says something about the account too."""
        self.why, self.silent = "", False
        try:
            return await self.ask_state()
        except UnansweredError as error:
            self.why, self.silent = str(error), error.silent
            match error.outcome:
                case AccountBlocked():
                    return AccountState.BLOCKED
                case NotConnected():
                    return AccountState.STOPPED
                case _:
                    return AccountState.UNREACHABLE

    def unreadable(self, answer: Answer) -> Unknown:
        return Unknown(reason=self.said(answer, "the answer cannot be read"))

    def said(self, answer: Answer, detail: str) -> str:
        """Return a reason for people: the status, and what the service said about it."""
        told = self.safe(detail)
        return (
            f"the gateway answered {answer.status}: {told}"
            if told
            else f"the gateway answered {answer.status}"
        )
