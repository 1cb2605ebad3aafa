"""The time and the number of queries of every page, with a million run targets and a million ledger rows.

Pages are found by their names: all that take no argument, or one that a row of the crowd answers, and every list of
the admin. Each is requested as an operator with many rows and, where it differs, as staff; in process.
"""

import argparse
import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median, quantiles
from typing import Any

from django.apps import apps
from django.conf import settings
from django.contrib import admin
from django.db import connection
from django.test import Client, override_settings
from django.test.utils import CaptureQueriesContext
from django.urls import NoReverseMatch, URLPattern, URLResolver, get_resolver, reverse

from accounts.models import User
from benchmarks.tables import crowd, office, scratch
from queues.states import ItemState

MOST_MS = 100.0
MOST_QUERIES = 25
APPS = (
    *("accounts", "reminders", "delivery", "activity", "queues", "audit", "api", "notices", "people"),
    *("auth", "mfa", "axes", "django_celery_beat"),
)
# Addresses that are not pages: fallbacks of sockets, files, forms of the admin, and POST only.
NOT_PAGES = frozenset({"healthz", "readyz", "service_worker", "logout", "login", "styleguide"})
PAGE = frozenset({200})
# As in production, except for what a proxy and `collectstatic` provide.
SERVED: Mapping[str, Any] = {
    "SECURE_SSL_REDIRECT": False,
    "NOTION_URL": "http://127.0.0.1:9",  # nobody answers there: a page that asks it is none of these
    "STORAGES": settings.STORAGES
    | {"staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One page as one person requested it."""

    name: str
    address: str
    p95_ms: float
    median_ms: float
    queries: int

    @property
    def good(self) -> bool:
        return self.p95_ms < MOST_MS and self.queries <= MOST_QUERIES


def addresses() -> Iterator[tuple[str, str]]:
    """Yield the name and the address of every operator page."""
    for name in sorted(_names(get_resolver().url_patterns)):
        space, _, last = name.rpartition(":")
        if space == "admin" or last in NOT_PAGES:
            continue
        for args in ((), (1,)):  # the operator's own row, and of runs the largest
            try:
                yield name, reverse(name, args=args)
            except NoReverseMatch:
                continue


def admin_lists() -> Iterator[tuple[str, str]]:
    """Yield every list of the admin; tables without one are on the page of another."""
    for label in APPS:
        for model in apps.get_app_config(label).get_models():
            if admin.site.is_registered(model):
                name = f"admin:{label}_{model._meta.model_name}_changelist"
                yield name, reverse(name)
    for filtered in ("delivery_runtarget", "activity_attempt"):
        yield f"admin:{filtered} of a run", reverse(f"admin:{filtered}_changelist") + "?run__id__exact=1"


def narrowed() -> Iterator[tuple[str, str]]:
    """Yield long lists as people use them: filtered, and far from the beginning."""
    runs, attempts = reverse("activity:list"), reverse("activity:attempts")
    yield "activity:list paused", f"{runs}?status=paused"
    yield "activity:list of an account", f"{runs}?account=1"
    yield "activity:list of a kind", f"{runs}?kind=follow_up"
    yield "activity:list searched", f"{runs}?q=reminder-1"
    yield "activity:attempts of an account", f"{attempts}?account=1"
    yield "activity:attempts sent", f"{attempts}?outcome=sent"
    yield "activity:attempts of a recipient", f"{attempts}?q=60100007501"
    yield "activity:attempts of nobody", f"{attempts}?q=nobody"
    yield "activity:attempts far back", f"{attempts}?after=500000"
    yield from _narrowed_run()
    yield from _narrowed_people()
    yield from _narrowed_queue()
    yield from _narrowed_audit()


def _narrowed_run() -> Iterator[tuple[str, str]]:
    run = reverse("runs:page", args=[1])
    for status in ("failed", "unconfirmed", "pending", "returned", "sent"):
        yield f"runs:page {status}", f"{run}?status={status}"
    yield "runs:page searched", f"{run}?q=group+77"
    yield "runs:page of nobody", f"{run}?q=nobody"


def _narrowed_people() -> Iterator[tuple[str, str]]:
    people = reverse("recipients:list")
    for query in (
        "tag=1",
        "tag=40",
        "state=reachable",
        "state=opted_out",
        "channel=email",
        "account=1",
        "q=class+77",
    ):
        yield f"recipients:list {query}", f"{people}?{query}"
    yield "recipients:list of a tag, searched", f"{people}?tag=1&state=opted_out&q=class"


def _narrowed_queue() -> Iterator[tuple[str, str]]:
    queue = reverse("queues:page", args=[1])
    for state in ItemState:
        yield f"queues:page {state}", f"{queue}?state={state}"
    yield "queues:page searched", f"{queue}?q=group+77"
    yield "queues:page far back", f"{queue}?after=500"
    yield "webhooks:page far back", reverse("webhooks:page", args=[1]) + "?after=500"
    yield "calendar of a day", reverse("calendar:calendar") + "?view=day"


def _narrowed_audit() -> Iterator[tuple[str, str]]:
    log = reverse("audit:list")
    for query in (
        *(
            "who=operator-2",
            "who=nobody",
            "what=webhook",
            "what=queue",
            "what=webhook.added",
            "what=recipient",
        ),
        *("thing=recipient", "thing=recipient+77", "thing=run", "door=page", "door=api", "until=2020-01-01"),
    ):
        yield f"audit:list {query}", f"{log}?{query}"


def to_many(size: crowd.Size) -> Iterator[tuple[str, str]]:
    """Yield every page of a reminder that goes to as many recipients as the largest run has targets."""
    steps = ("page", "message", "recipients", "when", "review", "fire")
    for what, pk in (("a long list", size.draft), ("a long tag", size.by_tag)):
        for step in steps:
            yield f"reminders:{step} to {what}", reverse(f"reminders:{step}", args=[pk])
    chosen = reverse("reminders:recipients", args=[size.draft])
    yield "reminders:recipients chosen", f"{chosen}?show=chosen"
    yield "reminders:recipients excluded", f"{chosen}?show=excluded"
    yield "reminders:recipients searched", f"{chosen}?q=class+77"


def _names(patterns: Sequence[URLPattern | URLResolver], space: str = "") -> Iterator[str]:
    for pattern in patterns:
        if isinstance(pattern, URLResolver):
            yield from _names(pattern.url_patterns, pattern.namespace or space)
        elif pattern.name:
            yield f"{space}:{pattern.name}" if space else pattern.name


def ask(client: Client, name: str, address: str, *, times: int) -> Asked | None:
    """Request a page several times; return None when it cannot be viewed."""
    if client.get(address).status_code not in PAGE:
        return None
    with CaptureQueriesContext(connection) as captured:
        client.get(address)
    queries = len(captured)  # the next request empties the log
    spent = []
    for _ in range(times):
        started = time.perf_counter()
        client.get(address)
        spent.append((time.perf_counter() - started) * 1000)
    return Asked(
        name=name,
        address=address,
        p95_ms=quantiles(spent, n=20)[-1],
        median_ms=median(spent),
        queries=queries,
    )


def main(argv: Sequence[str]) -> dict[str, object]:
    parser = argparse.ArgumentParser(prog="python -m benchmarks pages", description=__doc__)
    parser.add_argument("targets", type=int, nargs="?", default=1_000_000, help="A fifth are recipients.")
    parser.add_argument("--attempts", type=int, help="Rows of the ledger; as many as targets without it.")
    parser.add_argument("--times", type=int, default=60)
    parser.add_argument("--only", default="", help="Ask for addresses that contain this.")
    options = parser.parse_args(argv)
    with scratch.database("pages"):
        size = crowd.Size(targets=options.targets, attempts=options.attempts or options.targets)
        fill(size)
        with override_settings(**SERVED):
            logging.disable(logging.WARNING)  # a line per request would be measured too
            answers = list(everything(size, options.times, only=options.only))
            logging.disable(logging.NOTSET)
    _print(answers)
    slowest = max(answers, key=lambda asked: asked.p95_ms)
    return {
        "ok": all(asked.good for asked in answers),
        "pages": len(answers),
        "p95_ms": round(slowest.p95_ms, 1),
        "median_ms": round(median(asked.median_ms for asked in answers), 1),
        "slowest": f"{slowest.name} {slowest.address}",
        "max_queries": max(asked.queries for asked in answers),
    }


def fill(size: crowd.Size) -> None:
    """Fill every table, and let the database tidy them as it would have over a year."""
    crowd.fill(size)
    office.fill(size)
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")


def everything(size: crowd.Size, times: int, *, only: str = "") -> Iterator[Asked]:
    """Ask for every page, first as an operator with many rows, then as staff."""
    staff = User.objects.create(username="staff", password="!", is_staff=True)
    operator = User.objects.get(pk=crowd.OPERATOR)
    for person, pages in (
        (operator, [*addresses(), *narrowed(), *to_many(size)]),
        (staff, [*addresses(), *narrowed(), *admin_lists()]),
    ):
        client = Client(headers={"host": "localhost"})
        client.force_login(person)
        for name, address in pages:
            if only in address and (asked := ask(client, f"{name} ({person})", address, times=times)):
                yield asked


def _print(answers: Sequence[Asked]) -> None:
    print("| page | p95 ms | median ms | queries |\n|---|---:|---:|---:|")
    for asked in sorted(answers, key=lambda each: -each.p95_ms):
        flag = "" if asked.good else " TOO MUCH"
        print(
            f"| {asked.name} `{asked.address}` | {asked.p95_ms:.1f}{flag} | {asked.median_ms:.1f} | {asked.queries} |"
        )
