"""Tools after which messages leave. Each says first what it would do (`gate.py`)."""

from typing import Annotated, Any, Literal

from mcp.server.mcpserver import MCPServer, Resolve
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import Field

from client.api import Paceline
from client.assistant.gate import Gate, Plan, Said
from client.assistant.steering import DECIDES

Again = Annotated[
    Literal["rest", "everyone"] | None,
    Field(description="Where people received it within a day: leave them out, or send to everyone again."),
]


def add(server: MCPServer[Any], paceline: Paceline, gate: Gate) -> None:
    """Add the tools of a key that may send."""
    _add_schedule(server, paceline, gate)
    _add_fire(server, paceline, gate)
    _add_send(server, paceline, gate)


def _add_schedule(server: MCPServer[Any], paceline: Paceline, gate: Gate) -> None:
    def plan(reminder: int) -> Plan:
        path = f"/reminders/{reminder}"
        content = paceline.get(f"{path}/content")["content"]
        found, audience = paceline.get(path), paceline.get(f"{path}/audience")
        if found["problems"]:
            raise ToolError(" ".join(each["detail"] for each in found["problems"]))
        times = {name: found[name] for name in ("schedule", "fire_at", "cron", "zone", "window")}
        when = found["fire_at"] or found["cron"] or "when somebody fires it"
        return Plan(
            tool="schedule_reminder",
            will=f"Schedule {_message(found, audience['reached'])}\nTimes: {when} ({found['zone']}).",
            content=content,
            shown={"audience": audience, "times": times, "forecast": paceline.get(f"{path}/forecast")},
            do=lambda: {"reminder": paceline.post(f"{path}/schedule", {"content": content})},
        )

    @server.tool(annotations=DECIDES)
    def schedule_reminder(
        reminder: int,
        found: Annotated[Plan, Resolve(plan)],
        said: Annotated[Said, Resolve(gate.asks(plan))],
        confirm: bool = False,
    ) -> dict[str, Any]:
        """Switch a reminder on: it is sent at its times. Without confirm=true it only says what would happen."""
        return gate.decide(found, confirm=confirm, said=said)


def _add_fire(server: MCPServer[Any], paceline: Paceline, gate: Gate) -> None:
    def plan(reminder: int, again: Again, without_short: bool) -> Plan:
        path = f"/reminders/{reminder}"
        content = paceline.get(f"{path}/content")["content"]
        planned, found = paceline.look(f"{path}/fire", {"dry_run": True}), paceline.get(path)
        audience = planned["audience"]
        number = audience["reached"] - audience["short"]
        body = {"content": content, "number": number, "without_short": without_short}
        return Plan(
            tool="fire_reminder",
            will=f"Send now {_message(found, number)}",
            content=[content, number, again, without_short],
            shown={"audience": audience, "forecast": planned["forecast"]},
            do=lambda: paceline.post(f"{path}/fire", body | ({"again": again} if again else {})),
        )

    @server.tool(annotations=DECIDES)
    def fire_reminder(
        reminder: int,
        found: Annotated[Plan, Resolve(plan)],
        said: Annotated[Said, Resolve(gate.asks(plan))],
        again: Again = None,
        without_short: bool = False,
        confirm: bool = False,
    ) -> dict[str, Any]:
        """Send a scheduled reminder now, in its delivery hours. Without confirm=true it only says what would happen."""
        return gate.decide(found, confirm=confirm, said=said)


def _add_send(server: MCPServer[Any], paceline: Paceline, gate: Gate) -> None:
    def plan(accounts: list[int], recipient: int, text: str, subject: str, not_before: str | None) -> Plan:
        body: dict[str, Any] = {
            "accounts": accounts,
            "recipient": recipient,
            "text": text,
            "subject": subject,
        }
        if not_before:
            body["not_before"] = not_before
        planned = paceline.look("/messages", {**body, "dry_run": True})
        texts = "\n".join([*filter(None, [planned["subject"]]), *planned["texts"]])
        return Plan(
            tool="send_message",
            will=f"Send from {planned['account_name']} to {planned['name']} ({planned['address']}):\n{texts}",
            content=[body, planned["account"], planned["address"]],
            shown={name: planned[name] for name in ("leaves_at", "waiting_for", "sentence")},
            do=lambda: {"message": paceline.post("/messages", body)},
        )

    @server.tool(annotations=DECIDES)
    def send_message(
        accounts: Annotated[list[int], Field(min_length=1, description="Of several, one is chosen.")],
        recipient: int,
        text: str,
        found: Annotated[Plan, Resolve(plan)],
        said: Annotated[Said, Resolve(gate.asks(plan))],
        subject: str = "",
        not_before: str | None = None,
        confirm: bool = False,
    ) -> dict[str, Any]:
        """Send one message to one recipient. Without confirm=true it only says what would happen."""
        return gate.decide(found, confirm=confirm, said=said)


def _message(reminder: dict[str, Any], number: int) -> str:
    texts = [f"{part['filename']} {part['text']}".strip() for part in reminder["parts"]]
    lines = [f"“{reminder['name']}” to {number:,} recipients:", *filter(None, [reminder["subject"]]), *texts]
    return "\n".join(lines)
