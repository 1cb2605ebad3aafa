"""Tools that steer runs and accounts. Pausing is safe; what lets messages leave, or gives them up, is confirmed."""

from typing import Annotated, Any

from mcp.server.mcpserver import MCPServer, Resolve
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations

from client.api import Paceline
from client.assistant.gate import Gate, Plan, Said
from client.errors import ProblemError

STOPS = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=True)
DECIDES = ToolAnnotations(read_only_hint=False, destructive_hint=True, open_world_hint=True)


def add(server: MCPServer[Any], paceline: Paceline, gate: Gate) -> None:
    """Add the tools of a key that may steer."""
    _add_pauses(server, paceline)
    _add_run_tool(server, paceline, gate, "resume", "Continue")
    _add_run_tool(server, paceline, gate, "retry", "Send again to those for whom it failed:")
    _add_run_tool(server, paceline, gate, "cancel", "Give up the rest of")


def _add_pauses(server: MCPServer[Any], paceline: Paceline) -> None:
    @server.tool(annotations=STOPS)
    def pause_run(run: int) -> dict[str, Any]:
        """Pause a run before its next message leaves. A person can continue it later."""
        return dict(paceline.post(f"/runs/{run}/pause"))

    @server.tool(annotations=STOPS)
    def pause_account(account: int) -> dict[str, Any]:
        """Pause an account and its runs: nothing more leaves from it."""
        return dict(paceline.post(f"/accounts/{account}/pause"))

    @server.tool(annotations=STOPS)
    def switch_reminder_off(reminder: int) -> dict[str, Any]:
        """Stop further firings of a reminder. A run that is under way goes on: pause it to stop it."""
        return dict(paceline.post(f"/reminders/{reminder}/switch-off"))


def _add_run_tool(server: MCPServer[Any], paceline: Paceline, gate: Gate, verb: str, words: str) -> None:
    """Add a tool that does one thing to a run, once it is confirmed."""

    def plan(run: int) -> Plan:
        found = paceline.get(f"/runs/{run}")
        counts = {name: found[name] for name in ("status", "pending", "sent", "failed", "unconfirmed")}
        said = ", ".join(f"{count:,} {name}" for name, count in counts.items() if name != "status" and count)
        number = found["failed"] if verb == "retry" else found["pending"]
        return Plan(
            tool=f"{verb}_run",
            will=f"{words} run {run} “{found['name']}” for {number:,} recipients ({found['status']}; {said}).",
            content=[run, number, found["status"]],
            shown={"sentence": found["sentence"], "counts": counts},
            do=lambda: {
                "run": _cancel(paceline, run) if verb == "cancel" else paceline.post(f"/runs/{run}/{verb}")
            },
        )

    def act(
        run: int,
        found: Annotated[Plan, Resolve(plan)],
        said: Annotated[Said, Resolve(gate.asks(plan))],
        confirm: bool = False,
    ) -> dict[str, Any]:
        return gate.decide(found, confirm=confirm, said=said)

    purpose = f"{words} a run. Without confirm=true it only says what would happen."
    server.add_tool(act, name=f"{verb}_run", description=purpose, annotations=DECIDES)


def _cancel(paceline: Paceline, run: int) -> Any:
    """Cancel a run. Large ones ask for a phrase, which the person has agreed to by now."""
    path, body = f"/runs/{run}/cancel", {"confirmed": True}
    try:
        return paceline.post(path, body)
    except ToolError as error:
        problem = error.__cause__
        if not isinstance(problem, ProblemError) or not (phrase := problem.problem.get("phrase")):
            raise
    return paceline.post(path, {**body, "typed": phrase})
