"""Runs: following and steering them."""

import time
from argparse import Namespace
from typing import Any

from client.api import Paceline
from client.commands.parsing import Commands, Shared, at_most, command, group, number
from client.deciding import ask_phrase, decide
from client.errors import ProblemError
from client.printing import cell, complain, facts, say, say_json, table, when

COLUMNS = {
    "id": "ID",
    "name": "Name",
    "status": "Status",
    "fired_at": "Fired",
    "total": "Total",
    "sent": "Sent",
    "failed": "Failed",
    "pending": "Pending",
    "sentence": "Now",
}
COUNTS = ("pending", "sending", "sent", "returned", "failed", "skipped", "unconfirmed")
SETTLED = frozenset({"success", "partial", "failed", "canceled", "skipped"})
WATCHED = ("status", "canceling", *COUNTS, "sentence", "leaves_at", "waiting_for")


def add(commands: Commands, shared: Shared) -> None:
    verbs = group(commands, "runs", "List, show, watch, pause, resume, cancel and retry runs.")
    listing = command(verbs, shared, "list", list_)
    listing.add_argument("--status", help="such as running, paused, partial")
    listing.add_argument("--reminder", type=int, help="only those of this reminder")
    at_most(listing, 20)
    number(command(verbs, shared, "show", show), "run")
    watching = command(verbs, shared, "watch", watch)
    number(watching, "run")
    watching.add_argument("--every", type=float, default=2.0, help="seconds between two looks (2)")
    for name, do in {
        "pause": pause,
        "resume": resume,
        "cancel": cancel,
        "retry": retry,
        "undo": undo,
    }.items():
        verb = command(verbs, shared, name, do)
        number(verb, "run")
        if do is cancel:
            verb.add_argument("--yes", action="store_true", help="do it without asking")


def list_(paceline: Paceline, options: Namespace) -> None:
    """List the runs, the newest first."""
    rows = paceline.rows("/runs", most=options.limit, status=options.status, reminder=options.reminder)
    if options.json:
        say_json(rows)
    else:
        table(rows, COLUMNS, none="There are no runs.")


def show(paceline: Paceline, options: Namespace) -> None:
    """Show one run: its counts, its rate, its accounts, and when it goes on."""
    run = paceline.get(f"/runs/{options.id}")
    if options.json:
        say_json(run)
        return
    facts(run, {"Run": "name", "Status": "status", "Why": "pause_reason", "Fired": "fired_at"})
    say(_counts(run))
    say(run["sentence"])
    for sender in run["senders"]:
        say(f"    {sender['name']}: {sender['sentence']}")
    if run["finishes_at"]:
        say(f"Finished: about {when(run['finishes_at'])}, at {cell(run['rate'])} per minute")


def watch(paceline: Paceline, options: Namespace) -> int:
    """Follow a run until it has ended, with a line for each change. Exits with 1 where it failed or was canceled."""
    last: dict[str, Any] = {}
    while True:
        run = paceline.get(f"/runs/{options.id}")
        now = {name: run[name] for name in WATCHED}
        if now != last:
            say_json(run) if options.json else say(f"{run['status']}: {_counts(run)}. {run['sentence']}")
        if run["status"] in SETTLED:
            return int(run["status"] in {"failed", "canceled"})
        last = now
        time.sleep(max(0.2, options.every))


def pause(paceline: Paceline, options: Namespace) -> None:
    """Pause a run before its next message leaves."""
    _act(paceline, options, "pause")


def resume(paceline: Paceline, options: Namespace) -> None:
    """Continue a paused run: only recipients who are pending get anything."""
    _act(paceline, options, "resume")


def retry(paceline: Paceline, options: Namespace) -> None:
    """Send again to the recipients for whom it failed, in the same run."""
    _act(paceline, options, "retry")


def undo(paceline: Paceline, options: Namespace) -> None:
    """Take a large run back, in the seconds before anything leaves."""
    _act(paceline, options, "undo")


def cancel(paceline: Paceline, options: Namespace) -> None:
    """Give up the rest of a run, after a question."""
    path = f"/runs/{options.id}/cancel"
    try:
        run = paceline.look(path, {})
    except ProblemError as problem:
        if problem.name != "confirmation-needed":
            raise
        if not options.yes:
            complain(str(problem))
        decide(options, "Cancel it?", nothing="Nothing was canceled.")
        phrase = str(problem.problem.get("phrase") or "")
        typed = phrase if options.yes or not phrase else ask_phrase(phrase)
        run = paceline.post(path, {"confirmed": True, "typed": typed})
    _show(options, run)


def _act(paceline: Paceline, options: Namespace, verb: str) -> None:
    _show(options, paceline.post(f"/runs/{options.id}/{verb}"))


def _show(options: Namespace, run: dict[str, Any]) -> None:
    if options.json:
        say_json(run)
    else:
        say(f"{run['name']}: {run['status']}. {run['sentence']}")


def _counts(run: dict[str, Any]) -> str:
    said = [f"{run[name]:,} {name}" for name in COUNTS if run[name]]
    return f"{run['total']:,} recipients: {', '.join(said)}" if said else "no recipients"
