"""The check of a whole file: each row is good, a duplicate, known or wrong, and waits for a person's confirmation."""

import json
from collections.abc import Iterator
from itertools import islice
from typing import Any

from django.conf import settings
from django.db import connection

from accounts.imports.columns import Column
from accounts.imports.progress import Reporter
from accounts.imports.rows import Reading, Row, read_row
from accounts.imports.sheets import Format, Sheet, SheetError, from_first_filled, opened
from accounts.models import Import

COPY = """
COPY accounts_importrow (job_id, number, written, address, kind, name, fields, tags, problem) FROM STDIN
"""

# Of several rows with one address the first is used; the others refer to it.
MARK_TWINS = """
UPDATE accounts_importrow r SET twin = first.number
FROM (
    SELECT address, min(number) AS number FROM accounts_importrow
    WHERE job_id = %(job)s AND problem = '' GROUP BY address HAVING count(*) > 1
) first
WHERE r.job_id = %(job)s AND r.problem = '' AND r.address = first.address AND r.number > first.number
"""
MARK_KNOWN = """
UPDATE accounts_importrow r SET known = true
FROM accounts_recipient p
WHERE r.job_id = %(job)s AND r.problem = '' AND r.twin IS NULL
  AND p.owner_id = %(owner)s AND p.channel = %(channel)s AND p.address = r.address
"""
COUNT = """
SELECT count(*), count(*) FILTER (WHERE problem <> ''), count(*) FILTER (WHERE twin IS NOT NULL),
       count(*) FILTER (WHERE known), count(*) FILTER (WHERE problem = '' AND twin IS NULL AND NOT known)
FROM accounts_importrow WHERE job_id = %(job)s
"""
COUNTED = ("rows", "bad", "twins", "known", "new")


def check(job: Import) -> None:
    """Fill `job.rows` and `job.counts`, inside the caller's transaction. Raises SheetError."""
    job.rows.all().delete()
    with job.file.open("rb") as file, opened(file.file, Format(**job.format)) as sheet:
        _copy(job, sheet)
    names: dict[str, Any] = {"job": job.pk, "owner": job.owner_id, "channel": job.channel}
    with connection.cursor() as cursor:
        # New rows have no statistics yet: without them the planner expects no rows, and joins one by one.
        cursor.execute("ANALYZE accounts_importrow")
        cursor.execute(MARK_TWINS, names)
        cursor.execute(MARK_KNOWN, names)
        cursor.execute(COUNT, names)
        job.counts = dict(zip(COUNTED, cursor.fetchone() or (), strict=True))
    if not job.counts["rows"]:
        raise SheetError("There are no recipients in the file, only its titles. Add a row for each.")


def _copy(job: Import, sheet: Sheet) -> None:
    reporter, most = Reporter(job.pk), settings.IMPORT_MAX_ROWS
    with connection.cursor() as cursor, cursor.copy(COPY) as copy:
        for count, row in enumerate(_rows(job, sheet), start=1):
            if count > most:
                raise SheetError(f"The file has more than {most:,} rows. Split it, and import the parts.")
            copy.write_row(
                (
                    job.pk,
                    row.number,
                    row.written,
                    row.address,
                    row.kind,
                    row.name,
                    json.dumps(row.fields),
                    row.tags,
                    row.problem[:500],
                )
            )
            if count % 500 == 0:
                reporter.tell(rows=count, share=sheet.share)


def _rows(job: Import, sheet: Sheet) -> Iterator[Row]:
    reading = Reading(
        channel=job.channel, region=job.region, columns=[Column(**column) for column in job.columns]
    )
    for number, cells in islice(from_first_filled(sheet), 1 if job.header else 0, None):
        row = read_row(number, cells, reading)
        if row is not None:
            yield row
