"""Tools that write drafts. A reminder that is scheduled is out of their reach: its text is what will be sent."""

from typing import Annotated, Any, Literal

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations
from pydantic import Field

from client.api import Paceline

WRITES = ToolAnnotations(read_only_hint=False, destructive_hint=False, open_world_hint=False)
Day = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
Texts = Annotated[
    list[str] | None, Field(description="Each is a message of its own; {{ name }} is filled in.")
]
Ids = Annotated[list[int] | None, Field(description="Ids.")]
Hour = Annotated[int | None, Field(ge=0, le=24)]


def add(server: MCPServer[Any], paceline: Paceline) -> None:
    """Add the tools of a key that may manage."""

    @server.tool(annotations=WRITES)
    def draft_reminder(name: str, texts: Texts = None, subject: str | None = None) -> dict[str, Any]:
        """Make a draft. Nothing leaves before it is scheduled. Choose its audience and times with the other tools."""
        made = paceline.post("/reminders", {"name": name})
        message = _given(subject=subject, parts=_parts(texts))
        return dict(paceline.put(f"/reminders/{made['id']}/message", message) if message else made)

    @server.tool(annotations=WRITES)
    def write_draft(
        reminder: int, name: str | None = None, texts: Texts = None, subject: str | None = None
    ) -> dict[str, Any]:
        """Change the name, the subject or the texts of a draft. Texts are replaced as a whole."""
        _require_draft(paceline, reminder)
        message = _given(name=name, subject=subject, parts=_parts(texts))
        return dict(paceline.put(f"/reminders/{reminder}/message", message))

    @server.tool(annotations=WRITES)
    def choose_audience(
        reminder: int, accounts: Ids = None, tags: Ids = None, add: Ids = None, remove: Ids = None
    ) -> dict[str, Any]:
        """Choose who gets a draft and from which accounts: tags as a whole, or recipients to add and remove.

        Returns how many it reaches, and who is left out and why.
        """
        _require_draft(paceline, reminder)
        chosen = _given(accounts=accounts, tags=tags, add=add, remove=remove)
        return dict(paceline.put(f"/reminders/{reminder}/audience", chosen))

    @server.tool(annotations=WRITES)
    def set_times(
        reminder: int,
        at: Annotated[str | None, Field(description="Once, as 2026-11-20T09:00:00+01:00.")] = None,
        cron: Annotated[str | None, Field(description="Again and again, as 0 9 * * 1.")] = None,
        zone: str | None = None,
        start_hour: Hour = None,
        end_hour: Hour = None,
        days: list[Day] | None = None,
    ) -> dict[str, Any]:
        """Set when a draft will be sent once it is scheduled, and its delivery hours."""
        _require_draft(paceline, reminder)
        schedule = "once" if at else "cron" if cron else None
        hours = _given(start_hour=start_hour, end_hour=end_hour, days=days, zone=zone)
        return dict(
            paceline.put(f"/reminders/{reminder}/times", _given(schedule=schedule, at=at, cron=cron) | hours)
        )


def _require_draft(paceline: Paceline, reminder: int) -> None:
    status = paceline.get(f"/reminders/{reminder}")["status"]
    if status != "draft":
        raise ToolError(
            f"Reminder {reminder} is no draft but {status}: what it says is what is sent. Make a new draft, or let a "
            "person change it on its page."
        )


def _parts(texts: list[str] | None) -> list[dict[str, str]] | None:
    return None if texts is None else [{"text": text} for text in texts]


def _given(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}
