"""What all transports that speak HTTP share: the order of the steps, and what a failed answer means."""

import asyncio
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
    TryAgain,
    Unknown,
)
from delivery.transports.base import (
    AccountState,
    Media,
    Message,
    Transport,
    UnansweredError,
    Uploaded,
)
from delivery.transports.http.exchange import (
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


class HttpTransport(Transport):
    """The story of every kind that speaks HTTP: build a request, exchange it, read the answer.

    A kind overrides the steps: `prepare`, which sets `headers`; `build_message` and `parse_sent`; `build_upload` and
    `parse_uploaded` where it has media handles, else `build_with_file`; `ask_state`; `statuses`, `describe` or
    `parse_failure` where its service means something else by a status.
    """

    statuses: ClassVar[Mapping[int, Failure]] = STATUSES
    most_file_bytes: ClassVar[int] = 100 * 10**6
    headers: Mapping[str, str] = MappingProxyType({})  # of every request: mostly what proves who we are

    async def send(self, message: Message, key: str) -> Outcome:
        if message.media is None or self.capabilities.media_handles:
            return await self._send(self.build_message(message, key))
        file = await opened(message.media, most_bytes=self.most_file_bytes)
        if isinstance(file, Rejected | TryAgain):
            return file
        with file:
            # In a thread: it looks into the file, and may read all of it.
            request = await asyncio.to_thread(self.build_with_file, message, message.media, key, file)
            return await self._send(request, total=self.timeouts.upload)

    async def _send(self, request: Request | Rejected, *, total: float | None = None) -> Outcome:
        if isinstance(request, Rejected):
            return request
        answer = await self.exchange(request, total=total)
        if not isinstance(answer, Answer):
            return answer
        return self.parse_sent(answer) if answer.ok else self.parse_failure(answer)

    async def upload(self, media: Media) -> Uploaded | Outcome:
        if not self.capabilities.media_handles:
            return await super().upload(media)
        result = await self._upload(media)
        # Nobody sees an upload: one that may have arrived is simply made again.
        return TryAgain(reason=result.reason) if isinstance(result, Unknown) else result

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
        """The JSON object that answers a question; raises UnansweredError."""
        answer = await self.answered(request)
        found = answer.json()
        if not found:
            raise UnansweredError(self.unreadable(answer))
        return found

    async def ask_list(self, request: Request) -> list[Any]:
        """The JSON list that answers a question; raises UnansweredError."""
        answer = await self.answered(request)
        found = parsed(answer.body)
        if not isinstance(found, list):
            raise UnansweredError(self.unreadable(answer))
        return found

    async def answered(self, request: Request) -> Answer:
        """The answer to a question, if it is a good one; raises UnansweredError."""
        answer = await self.exchange(request)
        if not isinstance(answer, Answer):
            raise UnansweredError(answer)
        if not answer.ok:
            raise UnansweredError(self.parse_failure(answer))
        return answer

    async def ask_for(self, request: Request, *path: str | int) -> str:
        """The words at the end of the path in the answer; raises UnansweredError, also where there are none."""
        answer = await self.answered(request)
        if found := text(answer.json(), *path):
            return found
        raise UnansweredError(self.unreadable(answer))

    async def answered_if_there(self, request: Request) -> Answer | None:
        """The answer to what is asked of a session; None where there is none. Raises UnansweredError."""
        try:
            return await self.answered(request)
        except UnansweredError as error:
            if isinstance(error.outcome, NotConnected):
                return None
            raise

    def request(self, method: str, url: URL, payload: object = None) -> Request:
        """A request with our headers, and with JSON where there is something to say."""
        return json_request(method, url, headers=self.headers, payload=payload)

    async def exchange(self, request: Request, *, total: float | None = None) -> Answer | Unanswered:
        timeouts = self.timeouts
        return await exchange(self.session, request, connect=timeouts.connect, total=total or timeouts.total)

    @abstractmethod
    def build_message(self, message: Message, key: str) -> Request | Rejected:
        """The request that sends the message, or why there can be none."""

    @abstractmethod
    def parse_sent(self, answer: Answer) -> Outcome:
        """Read the answer of a service that took the message; `unreadable` where it cannot be read."""

    def build_with_file(self, message: Message, media: Media, key: str, file: BinaryIO) -> Request | Rejected:
        """The request that sends the message with its file; only asked where there are no media handles."""
        raise NotImplementedError

    def build_upload(self, media: Media, file: BinaryIO) -> Request:
        """The request that hands over the file; only asked where there are media handles."""
        raise NotImplementedError

    def parse_uploaded(self, answer: Answer) -> Uploaded | Outcome:
        """Read the handle out of the answer to an upload."""
        raise NotImplementedError

    def parse_failed_upload(self, answer: Answer) -> Uploaded | Outcome:
        """What an answer to an upload means that is not 2xx."""
        return self.parse_failure(answer)

    def parse_failure(self, answer: Answer) -> Outcome:
        """What an answer that is not 2xx means."""
        code, detail = self.describe(answer)
        reason = self.said(answer, detail or code)
        failure = meaning(answer.status, self.statuses)
        if failure is RateLimited or failure is NotConnected:
            return failure(after=retry_after(answer, now=datetime.now(UTC)), reason=reason)
        if failure is Rejected:
            return Rejected(reason=reason, code=self.safe(code) or str(answer.status))
        return failure(reason=reason)

    def describe(self, answer: Answer) -> tuple[str, str]:
        """The service's own code and words for a failure; empty where it has none."""
        found = answer.json()
        code, detail = found.get("error"), found.get("message")
        return code if isinstance(code, str) else "", detail if isinstance(detail, str) else ""

    async def ask_state(self) -> AccountState:
        """Ask the service how the account is; raises UnansweredError."""
        raise NotImplementedError

    async def status(self) -> AccountState:
        """That the question failed says something about the account too."""
        try:
            return await self.ask_state()
        except UnansweredError as error:
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
        """A reason for people: the status, and what the service said about it."""
        told = self.safe(detail)
        return (
            f"the gateway answered {answer.status}: {told}"
            if told
            else f"the gateway answered {answer.status}"
        )
