"""The messages to open pages, as JSON that needs no arithmetic: counts for the bars, and every text in words.

Sockets and polling send the same messages; static/js/live/ inserts them into the page.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from datetime import datetime, tzinfo
from typing import Any

from django.utils import timezone

from accounts.models import Account, User
from accounts.roles import visible
from activity.components import times
from activity.components.looks import Look, look_of
from activity.models import Notification
from activity.templatetags.paceline import PARTS, left_out_words
from delivery.live import snapshot
from delivery.models import Run
from delivery.sentences import account_state

Message = dict[str, Any]

MOST_RUNS = 100  # that one page may show
MOST_UNREAD = 99


def run_message(facts: Mapping[str, Any], zone: tzinfo) -> Message:
    """Return a run for its progress bars and pills; `facts` is a snapshot of `delivery.live`."""
    counts = {name: facts[name] for name in PARTS}
    # A worker of the release before does not send it.
    status = facts.get("shown") or ("canceling" if facts.get("canceling") else facts["status"])
    return {
        "type": "run",
        "run": facts["run"],
        "status": status,
        "look": _look(look_of(status)),
        "expected": facts["expected"],
        "left_out": facts["left_out"],
        "counts": counts,
        "text": {
            **{name: f"{count:,}" for name, count in counts.items()},
            "sending": f"{facts['sending']:,}",
            "waiting": f"{facts['pending'] - facts['sending']:,}",
            "expected": f"{facts['expected']:,}",
            "left_out": left_out_words(facts["left_out"]),
            "percent": f"{percent_settled(facts)}%",
            "summary": facts["summary"],
            **_speed(facts, zone),
        },
    }


def percent_settled(facts: Mapping[str, Any]) -> int:
    settled = facts["expected"] - facts["pending"]
    return settled * 100 // facts["expected"] if facts["expected"] else 0


def account_message(account: Account, zone: tzinfo) -> Message:
    now = timezone.now()
    why = account_state.whys([account], now=now, zone=zone)[account.pk]
    return {
        "type": "account",
        "account": account.pk,
        "status": account.status,
        "look": _look(look_of(account.status)),
        "text": {"reason": account.status_reason, "why": why.text(now, zone)},
    }


def notification_message(notification: Notification) -> Message:
    """Return a notification. The browser shows it under its key, so two open pages show it once."""
    return {
        "type": "notification",
        "title": notification.title,
        "body": notification.body,
        "url": notification.url,
        "tag": notification.key,
    }


def unread_message(user: User) -> Message:
    return {"type": "unread", "unread": unread(user)}


def unread(user: User) -> int:
    """Return the number of unread notifications, counted to one more than the bell can show."""
    rows = Notification.objects.filter(owner=user, read_at=None)
    return rows[: MOST_UNREAD + 1].count()


def run_messages(user: User, run_ids: Iterable[int], zone: tzinfo) -> list[Message]:
    """Return the messages of those runs on a page that the person may see."""
    runs = visible(Run.objects.filter(pk__in=list(run_ids)[:MOST_RUNS]), user).defer("parts")
    return [run_message(snapshot(run), zone) for run in runs.order_by("pk")]


def wanted_runs(text: str) -> list[int]:
    """Return the ids in an address: `runs=3,17`. Values that are not ids are dropped."""
    words = text.split(",")[:MOST_RUNS]
    return [int(word) for word in words if word.isascii() and word.isdigit() and len(word) < 19]


def _look(look: Look) -> dict[str, str]:
    return {name: str(value) for name, value in asdict(look).items()}


def _speed(facts: Mapping[str, Any], zone: tzinfo) -> dict[str, str]:
    """Return the speed and the expected end, or an empty dict when they are not known."""
    words = {"rate": f"{facts['rate']:g} per minute"} if facts["rate"] else {}
    if facts["finish_at"]:
        finish = datetime.fromisoformat(facts["finish_at"]).astimezone(zone)
        words["finish"] = f"{times.short(finish, timezone.now())} {times.zone_label(finish)}"
    return words
