from typing import Any

from django.core.exceptions import PermissionDenied
from django.core.management.base import BaseCommand, CommandError, CommandParser

from accounts.approvals.requests import DecidedError
from accounts.models import Approval
from delivery import live
from delivery.management.output import say, takes_json
from delivery.management.run_command import find_user
from reminders.approvals.deciding import approve, refuse

LIMIT = 100


class Command(BaseCommand):
    """List what waits for approval, or decide. Exit codes: 0 done or shown, 1 refused, 2 no such request or user."""

    help = "Without a number: list what waits for approval. With one: approve it, or refuse it with a reason."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "approval", type=int, nargs="?", help="The request's number, as the pages show it."
        )
        decision = parser.add_mutually_exclusive_group()
        decision.add_argument(
            "--approve", metavar="CONTENT", help="The content that the list shows: what you approve."
        )
        decision.add_argument("--refuse", metavar="REASON", help="Why not; whoever asked reads it.")
        parser.add_argument("--as", dest="user", help="The person who decides. Needed for a decision.")
        takes_json(parser)

    def handle(self, *_: Any, **options: Any) -> None:
        rows = Approval.objects.waiting().select_related("asked_by", "owner").order_by("pk")
        if options["approval"] is None:
            found = list(rows[:LIMIT])
            text = "\n".join(map(_line, found)) or "Nothing waits for approval."
            say(self, options, text, {"waiting": [_facts(each) for each in found]})
            return
        one = Approval.objects.filter(pk=options["approval"]).first()
        if one is None:
            raise CommandError(f"There is no request {options['approval']}.", returncode=2)
        say(self, options, self._decided(one, options), {"id": one.pk})
        live.flush()

    def _decided(self, one: Approval, options: dict[str, Any]) -> str:
        by = find_user(options["user"])
        if by is None:
            raise CommandError(
                "Say who decides: --as NAME. Nobody approves what they asked for.", returncode=1
            )
        try:
            if options["approve"]:
                return f"Approved: {approve(one, content=options['approve'], by=by).title}."
            if options["refuse"]:
                reason = options["refuse"]
                return f"Refused: {refuse(one, content=one.content, reason=reason, by=by).title}."
        except (DecidedError, PermissionDenied) as error:
            raise CommandError(str(error), returncode=1) from error
        return (
            f"{_line(one)}\nTo decide, add: --approve {one.content} --as NAME, or --refuse REASON --as NAME"
        )


def _line(one: Approval) -> str:
    who = one.asked_by or "Paceline"
    return f"{one.pk}  {one.get_kind_display()}: {one.title}. {who} asks. {one.why} Content: {one.content}"


def _facts(one: Approval) -> dict[str, object]:
    return {
        "id": one.pk,
        "owner": str(one.owner),
        "kind": one.kind,
        "title": one.title,
        "why": one.why,
        "recipients": one.recipients,
        "content": one.content,
        "asked_by": str(one.asked_by or ""),
        "asked_at": one.asked_at,
    }
