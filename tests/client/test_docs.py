"""docs/client.md names commands and tools that there are."""

import re
import shlex

import pytest

from client.api import Paceline
from client.assistant.gate import Gate
from client.assistant.server import made
from client.login import Login
from client.main import parser
from tests.config.programs import PROJECT

TEXT = (PROJECT / "docs" / "client.md").read_text()
COMMANDS = sorted(
    set(re.findall(r"`(paceline [^`]+)`", TEXT)) | set(re.findall(r"^(paceline .+)$", TEXT, re.MULTILINE))
)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_of_the_document_is_understood(command: str) -> None:
    assert parser().parse_args(shlex.split(command)[1:])


async def test_every_tool_is_in_the_document_and_no_other() -> None:
    with Paceline(Login(url="https://paceline.example", key="none")) as paceline:
        server = made(paceline, {"read", "manage", "steer", "send"}, Gate())
        tools = {tool.name for tool in await server.list_tools()}
    table = TEXT[TEXT.index("| scope | tools |") : TEXT.index("All but `read` need")]
    assert tools == set(re.findall(r"`(\w+_\w+)`", table))
