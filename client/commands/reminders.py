"""Reminders: drafting, forecasting, scheduling and firing them."""

import sys
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

from client.api import Paceline
from client.commands.parsing import Commands, Shared, at_most, command, group, number, sends
from client.commands.recipients import tag_id
from client.deciding import NOTHING, decide
from client.errors import ClientError
from client.printing import complain, say, say_json, table, when

COLUMNS = {"id": "ID", "name": "Name", "status": "Status", "next_fire_at": "Next", "sentence": "When"}
DAYS = "mon,tue,wed,thu,fri,sat,sun"
UNAPPROVED = "Somebody else has to approve it before that; until then nothing is sent."
Out = Callable[[str], None]


def add(commands: Commands, shared: Shared) -> None:
    verbs = group(commands, "reminders", "List, show, draft, forecast, schedule and fire reminders.")
    listing = command(verbs, shared, "list", list_)
    listing.add_argument("--status", choices=["draft", "scheduled", "off", "done"])
    at_most(listing)
    for name, do in {"show": show, "forecast": forecast}.items():
        number(command(verbs, shared, name, do), "reminder")
    _add_draft(verbs, shared)
    for name, do in {"schedule": schedule, "fire": fire}.items():
        sending = command(verbs, shared, name, do)
        number(sending, "reminder")
        sends(sending)
        if do is fire:
            _add_answers(sending)


def _add_draft(verbs: Commands, shared: Shared) -> None:
    parser = command(verbs, shared, "draft", draft)
    parser.add_argument("name", help="its name; recipients do not see it")
    parser.add_argument("--text", action="append", default=[], help="a part; may come several times")
    parser.add_argument("--text-file", help="a file with a part, or - for standard input")
    parser.add_argument("--subject")
    parser.add_argument("--account", type=int, action="append", default=[], help="may come several times")
    parser.add_argument("--tag", action="append", default=[], help="everyone with this tag")
    parser.add_argument("--to", type=int, action="append", default=[], metavar="ID", help="a recipient")
    when_ = parser.add_mutually_exclusive_group()
    when_.add_argument("--at", metavar="TIME", help="once, such as 2026-11-20T09:00+01:00")
    when_.add_argument("--cron", help="again and again, such as '0 9 * * 1'")
    parser.add_argument("--zone", help="such as Europe/Berlin")
    parser.add_argument("--hours", metavar="9-18", help="the delivery hours")
    parser.add_argument("--days", metavar="mon,tue", help=f"of {DAYS}")


def _add_answers(parser: Any) -> None:
    parser.add_argument("--again", choices=["rest", "everyone"], help="where people received it within a day")
    parser.add_argument("--without-short", action="store_true", help="leave out those who lack a value")


def list_(paceline: Paceline, options: Namespace) -> None:
    """List the reminders, the newest first."""
    rows = paceline.rows("/reminders", most=options.limit, status=options.status)
    if options.json:
        say_json(rows)
    else:
        table(rows, COLUMNS, none="There are no reminders.")


def show(paceline: Paceline, options: Namespace) -> None:
    """Show a reminder with its message, and what it still lacks."""
    reminder = paceline.get(f"/reminders/{options.id}")
    if options.json:
        say_json(reminder)
    else:
        _tell(reminder, say)


def draft(paceline: Paceline, options: Namespace) -> None:
    """Make a draft. Nothing leaves before somebody schedules it."""
    texts = [*options.text, *([_read(options.text_file)] if options.text_file else [])]
    tags = [tag_id(paceline, tag) for tag in options.tag]
    made = paceline.post("/reminders", {"name": options.name})["id"]
    path = f"/reminders/{made}"
    try:
        if texts or options.subject:
            paceline.put(f"{path}/message", _message(options, texts))
        if options.account or tags or options.to:
            chosen = {"accounts": options.account, "tags": tags, "add": options.to}
            paceline.put(f"{path}/audience", {name: value for name, value in chosen.items() if value})
        if times := _times(options):
            paceline.put(f"{path}/times", times)
    except ClientError as error:
        complain(f"The draft {made} was made, but is not complete:")
        raise error from None
    show(paceline, Namespace(id=made, json=options.json))


def forecast(paceline: Paceline, options: Namespace) -> None:
    """Show how the next run will go: when it begins, pauses and ends."""
    found = paceline.get(f"/reminders/{options.id}/forecast")
    if options.json:
        say_json(found)
    else:
        _tell_forecast(found, say)


def schedule(paceline: Paceline, options: Namespace) -> None:
    """Switch a reminder on: from then on it is sent at its times.

    Without a terminal it needs --yes. If somebody changes it between your look and your yes, nothing is done.
    """
    path = f"/reminders/{options.id}"
    content = paceline.get(f"{path}/content")["content"]
    reminder, audience = paceline.get(path), paceline.get(f"{path}/audience")
    foreseen = paceline.get(f"{path}/forecast")
    if reminder["problems"]:
        raise ClientError("\n".join(each["detail"] for each in reminder["problems"]))
    if options.json and options.dry_run:
        say_json({"dry_run": True, "reminder": reminder, "audience": audience, "forecast": foreseen})
        return
    if not options.yes:
        out = say if options.dry_run else complain
        _tell(reminder, out)
        _tell_audience(audience, out)
        _tell_forecast(foreseen, out)
    if options.dry_run:
        say(NOTHING)
        return
    decide(options, f"Schedule “{reminder['name']}”?")
    done = paceline.post(f"{path}/schedule", {"content": content})
    waits = f" {UNAPPROVED}" if done.get("approval") else ""
    say_json(done) if options.json else say(f"Scheduled. {done['sentence']}{waits}")


def fire(paceline: Paceline, options: Namespace) -> None:
    """Send a scheduled reminder now, inside its delivery hours.

    Without a terminal it needs --yes. If somebody changes it between your look and your yes, nothing is done.
    """
    path = f"/reminders/{options.id}"
    content = paceline.get(f"{path}/content")["content"]
    planned = paceline.look(f"{path}/fire", {"dry_run": True})
    if options.json and options.dry_run:
        say_json(planned)
        return
    if not options.yes:
        out = say if options.dry_run else complain
        _tell(paceline.get(path), out)
        _tell_audience(planned["audience"], out)
        _tell_forecast(planned["forecast"], out)
    if options.dry_run:
        say(NOTHING)
        return
    audience = planned["audience"]
    number_ = audience["reached"] - audience["short"]
    decide(options, f"Send it to {number_:,} recipients now?")
    body = {"content": content, "number": number_, "without_short": options.without_short}
    done = paceline.post(f"{path}/fire", body | ({"again": options.again} if options.again else {}))
    if options.json:
        say_json(done)
        return
    say(f"It is run {done['run']['id']}. {done['sentence']}" if done["run"] else done["sentence"])


def _message(options: Namespace, texts: list[str]) -> dict[str, Any]:
    body: dict[str, Any] = {"parts": [{"text": text} for text in texts]} if texts else {}
    return body | ({"subject": options.subject} if options.subject else {})


def _times(options: Namespace) -> dict[str, Any]:
    body: dict[str, Any] = {}
    if options.at:
        body |= {"schedule": "once", "at": options.at}
    if options.cron:
        body |= {"schedule": "cron", "cron": options.cron}
    if options.hours:
        start, _, end = options.hours.partition("-")
        body |= {"start_hour": start, "end_hour": end}
    if options.days:
        body["days"] = options.days.split(",")
    return body | ({"zone": options.zone} if options.zone else {})


def _read(file: str) -> str:
    try:
        return sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ClientError(f"{file} cannot be read: {error}") from error


def _tell(reminder: dict[str, Any], out: Out) -> None:
    out(f"{reminder['name'] or 'Without a name'} ({reminder['status']}, number {reminder['id']})")
    out(reminder["sentence"])
    if reminder["subject"]:
        out(f"Subject: {reminder['subject']}")
    for part in reminder["parts"]:
        for line in f"{part['filename']} {part['text']}".strip().splitlines():
            out(f"    {line}")
    for problem in reminder["problems"]:
        out(f"Missing: {problem['detail']}")


def _tell_audience(audience: dict[str, Any], out: Out) -> None:
    out(f"Recipients: {audience['reached']:,}")
    for reason, count in audience["excluded"].items():
        out(f"    {count:,} more get nothing: {reason}")
    for name, count in audience["lacking"].items():
        out(f"    {count:,} have no value for {{{{ {name} }}}}")


def _tell_forecast(found: dict[str, Any], out: Out) -> None:
    out(f"{found['label']}: {found['sentence']}")
    if found["suggestion"]:
        out(found["suggestion"])
    for pause in found["pauses"]:
        until = f" until {when(pause['until'])}" if pause["until"] else ""
        out(f"    pauses {when(pause['at'])}{until}: {pause['cause']}, {pause['done']:,} done")
