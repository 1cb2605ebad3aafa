from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from accounts.models import Account
from delivery import live
from delivery.hand_over.doors import Look, hand_over_all, look
from delivery.hand_over.move import runs_of
from delivery.hand_over.preview import Preview
from delivery.hand_over.split import Wish
from delivery.management.output import say, takes_json
from delivery.management.run_command import find_run, find_user
from delivery.models import Run


class Command(BaseCommand):
    """Hand over. Exit codes: 0 done or shown, 1 refused, 2 no such run, account or user."""

    help = (
        "Move what is left of a run, or all work of an account, to other accounts. Without --yes it shows both "
        "forecasts and changes nothing."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        what = parser.add_mutually_exclusive_group(required=True)
        what.add_argument("--run", type=int, help="The run's number, as the pages show it.")
        what.add_argument("--account", type=int, help="The account whose work moves.")
        parser.add_argument("--to", type=int, nargs="+", required=True, help="The accounts to move to.")
        parser.add_argument("--known", action="store_true", help="Also people who talked with their account.")
        parser.add_argument("--yes", action="store_true", help="Hand over; without it, only show.")
        parser.add_argument("--as", dest="user", help="On behalf of this user, who must be allowed to do it.")
        takes_json(parser)

    def handle(self, *_: Any, **options: Any) -> None:
        runs, by = _runs(options), find_user(options["user"])
        wish = Wish(to=options["to"], known=options["known"], of=options["account"])
        if not options["yes"]:
            self._show(look(runs, wish, now=timezone.now(), by=by), options)
            return
        report = hand_over_all(runs, wish, by=by)
        live.flush()
        facts = {
            "done": True,
            "moved": report.moved,
            "told": report.told,
            "refused": report.refused,
            "waiting": report.waiting,
        }
        say(self, options, "\n".join([*report.told, *report.waiting]), facts)
        if report.refused or not (report.done or report.waiting):
            raise CommandError("\n".join(report.refused) or "There is nothing to hand over.", returncode=1)

    def _show(self, found: Look, options: dict[str, Any]) -> None:
        if found.refused:
            raise CommandError("\n".join(found.refused), returncode=1)
        text = "\n\n".join([*map(_text, found.previews), "To do it, repeat the command with --yes."])
        say(self, options, text, {"done": False, "runs": [_facts(each) for each in found.previews]})


def _runs(options: dict[str, Any]) -> list[Run]:
    if options["run"] is not None:
        return [find_run(options["run"])]
    account = Account.objects.filter(pk=options["account"]).first()
    if account is None:
        raise CommandError(f"There is no account {options['account']}.", returncode=2)
    return runs_of(account)


def _text(found: Preview) -> str:
    lines = [f"Run {found.run.pk}, {found.run.name}: {found.told} {found.stays}".rstrip()]
    lines.append(f"  As it is: {found.stay.sentence}")
    if found.move is not None:
        lines.append(f"  Handed over: {found.move.sentence}")
    return "\n".join(lines)


def _facts(found: Preview) -> dict[str, object]:
    return {
        "run": found.run.pk,
        "name": found.run.name,
        "moves": {str(pk): number for pk, number in found.split.moves.items()},
        "stays": {str(why): number for why, number in found.split.stayed.items()},
        "as_it_is": found.stay.sentence,
        "handed_over": found.move.sentence if found.move is not None else "",
    }
