"""A run of 1,000,000 targets is canceled: how long the person waits, and how long the ticks take back the rest."""

import argparse
import logging
import time
from collections.abc import Sequence
from statistics import median

from django.conf import settings
from django.db import connection
from django.test import Client, override_settings
from django.urls import reverse
from django.utils import timezone

from accounts.models import Account, User
from benchmarks.pages import SERVED
from benchmarks.tables import scratch
from delivery.engine.tick import take_back_canceled
from delivery.models import Run, RunAccount
from delivery.states import RunStatus
from reminders.models import Reminder

TARGETS = 1_000_000
PROMISED_SECONDS = 0.1
SENT = 10  # of all targets, the first ones

PEOPLE = """
INSERT INTO accounts_recipient (owner_id, channel, kind, address, name, fields, attempts, created_at)
SELECT %(owner)s, 'whatsapp', 'group', n || '@g.us', 'Group ' || n, '{}', 0, now()
FROM generate_series(1, %(targets)s) n
"""
THEIRS = """
INSERT INTO delivery_runtarget (run_id, recipient_id, account_id, status, not_before, settled_at)
SELECT %(run)s, p.id, %(account)s, CASE WHEN row_number() OVER (ORDER BY p.id) <= %(sent)s THEN 'sent'
       ELSE 'pending' END, now(), now()
FROM accounts_recipient p ORDER BY p.id
"""


def main(argv: Sequence[str]) -> dict[str, object]:
    parser = argparse.ArgumentParser(prog="python -m benchmarks cancel", description=__doc__)
    parser.add_argument("targets", type=int, nargs="?", default=TARGETS)
    targets = parser.parse_args(argv).targets
    with scratch.database("cancel"), override_settings(**SERVED):
        logging.disable(logging.WARNING)
        run = _running(targets)
        browser = Client(headers={"host": "localhost"})
        browser.force_login(run.owner)
        pressed = _press(browser, run)
        run.refresh_from_db()
        at_once, page = run.skipped, _open(browser, run)
        ticks = _ticks(run)
        logging.disable(logging.NOTSET)
    every = settings.TICK_SECONDS
    print("| what | seconds |\n|---|---:|")
    print(f"| the person who presses “Cancel run” waits | {pressed:.3f} |")
    print(f"| the page of the run, right after it | {page:.3f} |")
    print(f"| one tick takes back up to 100,000, median of {len(ticks)} | {median(ticks):.2f} |")
    print(f"| all {targets:,} taken back, with a tick every {every:g} s | {len(ticks) * every:.0f} |")
    print(f"| work of these ticks | {sum(ticks):.1f} |")
    return {
        "targets": targets,
        "seconds": round(pressed, 3),
        "at_once": at_once,
        "page_seconds": round(page, 3),
        "ticks": len(ticks),
        "longest_tick_seconds": round(max(ticks), 2),
        "work_seconds": round(sum(ticks), 1),
        "ok": pressed < PROMISED_SECONDS
        and run.status == RunStatus.PARTIAL
        and run.skipped == targets - SENT,
    }


def _running(targets: int) -> Run:
    owner = User.objects.create(username="operator", password="!")
    account = Account.objects.create(
        owner=owner,
        name="Office",
        channel="whatsapp",
        transport="sandbox",
        status="active",
        profile="whatsapp_established",
    )
    run = Run.objects.create(
        reminder=Reminder.objects.create(owner=owner, name="Rent is due"),
        owner=owner,
        fired_at=timezone.now(),
        name="Rent is due",
        action="message",
        parts=[],
        zone="UTC",
        window_start_hour=0,
        window_end_hour=24,
        send_days=127,
        status=RunStatus.RUNNING,
        total=targets,
        sent=SENT,
        pending=targets - SENT,
    )
    RunAccount.objects.create(run=run, account=account)
    with connection.cursor() as cursor:
        cursor.execute(PEOPLE, {"owner": owner.pk, "targets": targets})
        cursor.execute(THEIRS, {"run": run.pk, "account": account.pk, "sent": SENT})
        cursor.execute("VACUUM ANALYZE")
    return run


def _press(browser: Client, run: Run) -> float:
    """Return the seconds of the request that confirms."""
    address = reverse("runs:cancel", args=[run.pk])
    browser.get(address)
    start = time.perf_counter()
    browser.post(address, {"confirmed": "1", "typed": run.name})
    return time.perf_counter() - start


def _open(browser: Client, run: Run) -> float:
    start = time.perf_counter()
    browser.get(reverse("runs:page", args=[run.pk]))
    return time.perf_counter() - start


def _ticks(run: Run) -> list[float]:
    """Return the seconds of each tick until the run has ended."""
    spent = []
    while run.status == RunStatus.PAUSED:
        start = time.perf_counter()
        take_back_canceled()
        spent.append(time.perf_counter() - start)
        run.refresh_from_db()
    return spent
