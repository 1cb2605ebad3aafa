from datetime import timedelta
from random import Random
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from delivery.management.output import records, say
from delivery.management.table import table
from queues.models import Source, SourceRead
from queues.sources.dispatch import serve_at_once
from queues.sources.reading import COUNTED

HEAD = ("source", "kind", "title", "outcome", *COUNTED, "why")


class Command(BaseCommand):
    """Read sources now. Exit codes: 0 all were read, 1 some were not, 2 there is no such source."""

    help = "Read the tables of sources now, and write back what became of their items."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "source", nargs="*", type=int, help="Their numbers; without one, all that are on."
        )
        parser.add_argument("--minutes", type=float, default=30, help="The longest time for each of them.")
        parser.add_argument("--json", action="store_true", help="One line of JSON per source.")

    def handle(self, *_: Any, **options: Any) -> None:
        longest = timedelta(minutes=options["minutes"])
        rows = [_read(source, longest) for source in _chosen(options["source"])]
        text = "\n".join(table(HEAD, rows)) if rows else "There is no source to read."
        say(self, options, text, records(HEAD, rows))
        failed = sum(1 for row in rows if row[3] != SourceRead.Outcome.DONE)
        if failed:
            raise CommandError(f"{failed} of {len(rows)} could not be read.", returncode=1)


def _chosen(wanted: list[int]) -> list[Source]:
    rows = Source.objects.exclude(mapping={}).order_by("pk")
    if not wanted:
        return list(rows.filter(switched_off_at=None))
    found = list(rows.filter(pk__in=wanted))
    if strange := set(wanted) - {source.pk for source in found}:
        raise CommandError(f"There is no source {min(strange)}.", returncode=2)
    return found


def _read(source: Source, longest: timedelta) -> tuple[object, ...]:
    """Read one source to its end, and return its line."""
    began = timezone.now()
    Source.objects.filter(pk=source.pk).update(next_read_at=began, next_tell_at=began)
    mine = serve_at_once(source.pk, longest=longest, rng=Random())
    source.refresh_from_db()
    read = SourceRead.objects.filter(source=source).order_by("-id").first()
    fresh = read is not None and (read.ended_at is None or read.ended_at >= began)
    outcome = read.outcome if read is not None and fresh else SourceRead.Outcome.FAILED
    counts = read.counts if read is not None and fresh else {}
    why = (
        source.stopped_why or source.trouble or ("" if mine else "Another worker has it, or it has to wait.")
    )
    return (
        source.pk,
        source.kind,
        source.title,
        str(outcome),
        *(counts.get(name, 0) for name in COUNTED),
        why,
    )
