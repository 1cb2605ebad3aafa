"""Lets nothing leave that a person has not seen.

1. Without `confirm` a tool only looks: it says what would happen, and the gate remembers that very content.
2. With `confirm` the tool looks again. If the content is not one that was shown in the last minutes, it is shown anew.
3. Where the assistant's program can ask its person directly (elicitation), the gate asks. A model cannot answer that.
4. Where it cannot, and the assistant has read replies, nothing leaves: their text may have talked it into this.
5. Then it is done, for that content alone: `schedule` and `fire` send its fingerprint, which Paceline compares.
"""

import hashlib
import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any

from mcp.server.mcpserver import (
    AcceptedElicitation,
    CancelledElicitation,
    Context,
    DeclinedElicitation,
    Elicit,
    Resolve,
)
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import BaseModel, Field

SHOWN_SECONDS = 900


class Answer(BaseModel):
    """The answer of the person."""

    yes: bool = Field(description="Yes, do this.")


NOT_DUE = Answer(yes=False)  # nothing was to be asked yet
CANNOT_ASK = Answer(yes=False)  # the assistant's program cannot ask its person
Said = AcceptedElicitation[Answer] | DeclinedElicitation | CancelledElicitation


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The effect of a tool. `will` is for people and changes only with the content; `shown` may have times in it."""

    tool: str
    will: str
    content: Any
    shown: dict[str, Any]
    do: Callable[[], dict[str, Any]]

    @property
    def mark(self) -> str:
        said = json.dumps([self.tool, self.will, self.content], sort_keys=True, default=str)
        return hashlib.sha256(said.encode()).hexdigest()


@dataclass(slots=True)
class Gate:
    """Remembers what was shown, and whether texts of strangers were read."""

    trusting: bool = False  # send also after replies were read, where the person cannot be asked directly
    read_strangers: bool = False
    _shown: dict[str, float] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def asks(self, plan: Callable[..., Plan]) -> Callable[..., Any]:
        """Return the resolver that asks the person, where that is possible and due."""

        def person(
            confirm: bool, found: Annotated[Plan, Resolve(plan)], ctx: Context[Any, Any]
        ) -> Elicit[Answer] | Answer:
            if not confirm or not self._was_shown(found):
                return NOT_DUE
            return Elicit(f"{found.will}\n\nDo this?", Answer) if _can_ask(ctx) else CANNOT_ASK

        return person

    def decide(self, plan: Plan, *, confirm: bool, said: Said) -> dict[str, Any]:
        """Do what was planned, or return what would be done."""
        if not confirm:
            return self._show(plan, "Nothing was done. Show this to the person. If they agree: confirm=true.")
        data = said.data if isinstance(said, AcceptedElicitation) else None
        if data is NOT_DUE or not self._take(plan):
            return self._show(
                plan, "Nothing was done: this was not shown yet, or has changed. Show it first."
            )
        if data is CANNOT_ASK:
            self._refuse_strangers()
        elif data is None or not data.yes:
            return {"done": False, "declined": True, "next": "The person said no. Ask them what they want."}
        return {"done": True, "did": plan.will, **plan.do()}

    def _show(self, plan: Plan, advice: str) -> dict[str, Any]:
        with self._lock:
            now = time.monotonic()
            self._shown = {mark: at for mark, at in self._shown.items() if now - at < SHOWN_SECONDS}
            self._shown[plan.mark] = now
        return {"done": False, "dry_run": True, "would": plan.will, "next": advice, **plan.shown}

    def _was_shown(self, plan: Plan) -> bool:
        with self._lock:
            at = self._shown.get(plan.mark)
        return at is not None and time.monotonic() - at < SHOWN_SECONDS

    def _take(self, plan: Plan) -> bool:
        """Use up what was shown: each look is good for one yes, or one no."""
        with self._lock:
            at = self._shown.pop(plan.mark, None)
        return at is not None and time.monotonic() - at < SHOWN_SECONDS

    def _refuse_strangers(self) -> None:
        if self.read_strangers and not self.trusting:
            raise ToolError(
                "Nothing was done. Texts of strangers were read in this session, and your program cannot ask its "
                "person directly, so nobody can be sure who wants this. The person can do it on the page or with the "
                "command paceline, start a new session, or start the server with --send-after-replies."
            )


def _can_ask(ctx: Context[Any, Any]) -> bool:
    capabilities = ctx.client_capabilities
    asking = capabilities.elicitation if capabilities is not None else None
    return asking is not None and (asking.form is not None or asking.url is None)
