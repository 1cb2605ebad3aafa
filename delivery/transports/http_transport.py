"""What all transports that speak HTTP share: the order of the steps, and what a failed answer means."""

import asyncio
from abc import abstractmethod
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, BinaryIO, ClassVar

import aiohttp

from delivery.outcomes import NotConnected, Outcome, RateLimited, Rejected, TryAgain, Unknown
from delivery.transports.base import (
    Credentials,
    Media,
    Message,
    Timeouts,
    Transport,
    UnansweredError,
    Uploaded,
)
from delivery.transports.http import (
    STATUSES,
    Answer,
    Failure,
    Request,
    exchange,
    meaning,
    retry_after,
)

MAX_DETAIL = 200


class HttpTransport(Transport):
    """The story of every kind that speaks HTTP: build a request, exchange it, read the answer.

    A kind overrides the steps: `build_message` and `parse_sent`; `build_upload` and `parse_uploaded` where it
    has media handles; `statuses`, `describe` or `parse_failure` where its service means something else by a
    status.
    """

    statuses: ClassVar[Mapping[int, Failure]] = STATUSES

    def __init__(
        self, credentials: Credentials, session: aiohttp.ClientSession, *, timeouts: Timeouts | None = None
    ) -> None:
        super().__init__(credentials, session, timeouts=timeouts)
        self._secrets = [self.credentials[f.name] for f in self.credential_fields if f.secret]

    async def send(self, message: Message, key: str) -> Outcome:
        answer = await self.exchange(self.build_message(message, key))
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
        try:
            file = await asyncio.to_thread(media.open)
        except FileNotFoundError:
            return Rejected(reason=f"the file {media.filename} is not there any more", code="media_missing")
        except OSError:
            return TryAgain(reason=f"the file {media.filename} cannot be read")
        with file:
            answer = await self.exchange(self.build_upload(media, file), total=self.timeouts.upload)
        if not isinstance(answer, Answer):
            return answer
        return self.parse_uploaded(answer) if answer.ok else self.parse_failure(answer)

    async def ask(self, request: Request) -> dict[str, Any]:
        """The JSON object that answers a question; raises UnansweredError."""
        answer = await self.exchange(request)
        if not isinstance(answer, Answer):
            raise UnansweredError(answer)
        if not answer.ok:
            raise UnansweredError(self.parse_failure(answer))
        found = answer.json()
        if not found:
            raise UnansweredError(self.unreadable(answer))
        return found

    async def exchange(self, request: Request, *, total: float | None = None) -> Answer | TryAgain | Unknown:
        timeouts = self.timeouts
        return await exchange(self.session, request, connect=timeouts.connect, total=total or timeouts.total)

    @abstractmethod
    def build_message(self, message: Message, key: str) -> Request:
        """The request that sends the message."""

    @abstractmethod
    def parse_sent(self, answer: Answer) -> Outcome:
        """Read the answer of a service that took the message; `unreadable` where it cannot be read."""

    def build_upload(self, media: Media, file: BinaryIO) -> Request:
        """The request that hands over the file; only asked where there are media handles."""
        raise NotImplementedError

    def parse_uploaded(self, answer: Answer) -> Uploaded | Outcome:
        """Read the handle out of the answer to an upload."""
        raise NotImplementedError

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

    def safe(self, text: str) -> str:
        """A service's own words, short, on one line, and without our secrets, which some services repeat."""
        for secret in self._secrets:
            # A shorter one is in half of all words, and no secret.
            if len(secret) >= 4:
                text = text.replace(secret, "***")
        return " ".join(text.split())[:MAX_DETAIL]
