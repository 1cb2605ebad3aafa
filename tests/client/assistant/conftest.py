"""The real server process, spoken to by the official client library."""

import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from mcp.client.session import ClientRequestContext
from mcp.client.stdio import stdio_client
from mcp_types import ElicitRequestParams, ElicitResult

from tests.config.programs import PROJECT

Connect = Callable[..., AbstractAsyncContextManager["Assistant"]]


class Assistant:
    """An assistant's program: calls tools, and asks its person where the server wants that."""

    def __init__(self, client: Client, asked: list[str]) -> None:
        self.client, self.asked = client, asked

    async def tools(self) -> set[str]:
        return {tool.name for tool in (await self.client.list_tools()).tools}

    async def call(self, tool: str, **arguments: Any) -> Any:
        """Return what a tool says."""
        result = await self.client.call_tool(tool, arguments)
        assert not result.is_error, result.content
        return result.structured_content

    async def refused(self, tool: str, **arguments: Any) -> str:
        """Return the sentence with which a tool refuses."""
        result = await self.client.call_tool(tool, arguments)
        assert result.is_error, result.structured_content
        return "".join(getattr(part, "text", "") for part in result.content)


@pytest.fixture
def connect(login: str) -> Connect:
    """Return a way to start the server; `person` is what the person answers, None where they cannot be asked."""

    @asynccontextmanager
    async def connected(
        *flags: str, person: bool | None = None, mode: str = "auto"
    ) -> AsyncIterator[Assistant]:
        asked: list[str] = []

        async def answer(context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
            asked.append(params.message)
            return ElicitResult(
                action="accept" if person else "decline", content={"yes": True} if person else None
            )

        server = StdioServerParameters(
            command=sys.executable, args=["-m", "client", "mcp", *flags], cwd=PROJECT, env=dict(os.environ)
        )
        async with Client(
            stdio_client(server), mode=mode, elicitation_callback=None if person is None else answer
        ) as client:
            yield Assistant(client, asked)

    return connected
