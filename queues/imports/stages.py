"""The stages of an import of items: uploaded, described, checked, confirmed, saved.

The check reads every row and saves nothing. Saving goes on in slices, each a transaction of its own: items have own
ids, so an import that was interrupted goes on, and a file that is imported twice makes nothing twice.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from itertools import islice
from typing import BinaryIO, cast

import structlog
from django.conf import settings
from django.core.files.base import File
from django.db import transaction
from django.utils import timezone

from accounts.addresses import BadAddressError, canonical
from accounts.imports.sheets import Format, SheetError, detect, opened
from accounts.imports.stages import AT_ONCE, WrongStageError, sample
from accounts.models import Role, User
from accounts.regions import region_of
from accounts.roles import require_touch
from audit.record import record
from config.celery import app
from config.redis.publishing import publish
from queues import approval
from queues.actions import Result, Took, put
from queues.entries import EntryError, check
from queues.imports.columns import guess, is_header
from queues.imports.rows import Row, rows_of
from queues.models import Item, Queue, QueueImport
from queues.senders import Senders, check_sender, senders
from reminders.drafts import NotPossibleError

log = structlog.get_logger(__name__)

TASK = "queues.import"
SOURCE = "file"
SLICE = 2_000
SHOWN, MOST_PROBLEMS = 20, 1_000
NOT_STARTED = timedelta(seconds=60)
KEPT = timedelta(days=30)
Status = QueueImport.Status


def upload(queue: Queue, file: "File[bytes]", *, filename: str, by: User) -> QueueImport:
    """Store the file and guess its columns. Raises SheetError; then nothing is stored."""
    require_touch(queue, by, Role.SEND)
    found = detect(_binary(file))
    first = sample(_binary(file), found)
    header = is_header(first[0])
    width = max(len(row) for row in first)
    titles = (
        [*first[0], *[""] * (width - len(first[0]))] if header else [f"Column {n + 1}" for n in range(width)]
    )
    for old in QueueImport.objects.filter(queue=queue, created_at__lt=timezone.now() - KEPT).exclude(
        status__in=["checking", "saving"]
    ):
        discard(old)
    job = QueueImport(
        queue=queue,
        made_by=by,
        filename=filename[-255:],
        format={"kind": found.kind, "encoding": found.encoding, "delimiter": found.delimiter},
        header=header,
        columns=guess(titles),
    )
    job.file.save(f"queue-{queue.pk}-{timezone.now():%Y%m%d%H%M%S%f}.{found.kind}", file, save=False)
    job.save()
    record("queue.uploaded", queue, by=by, note=job.filename)
    return job


def sample_of(job: QueueImport) -> list[list[str]]:
    """Return the first rows of a stored file, titles included. Raises SheetError."""
    with job.file.open("rb") as file:
        return sample(_binary(file), Format(**job.format))


def start_check(job: QueueImport) -> None:
    """Check every row: a small file at once, a large one by a worker."""
    _move(job, Status.CHECKING, among=(Status.DRAFT, Status.CHECKED, Status.FAILED))
    _begin(job)


def confirm(job: QueueImport, *, by: User) -> None:
    """Save the checked rows. A second confirmation does nothing."""
    require_touch(job.queue, by, Role.SEND)
    if job.status in {Status.SAVING, Status.DONE}:
        return
    if not job.counts.get("good"):
        raise WrongStageError("No row of the file can be saved. Correct the file, and import it again.")
    try:  # before anything is saved: a large file is saved in slices
        approval.require(job.queue, taking=job.counts["good"], adding=job.counts.get("new", 0))
    except NotPossibleError as error:
        raise WrongStageError(str(error)) from error
    with transaction.atomic():
        _move(job, Status.SAVING, among=(Status.CHECKED,))
        record("queue.imported", job.queue, by=by, note=f"{job.filename}: {job.counts['good']:,} items")
    _begin(job)


def discard(job: QueueImport) -> None:
    """Delete the file. Items that were saved stay."""
    if job.working and job.started_at is not None and timezone.now() - job.started_at < NOT_STARTED:
        raise WrongStageError("The import is in progress. Wait until it has finished.")
    job.file.delete(save=False)
    job.delete()


def work(job_id: int) -> None:
    """Do the next step of an import. A second worker finds it locked or done, and returns."""
    try:
        with transaction.atomic():
            locked = QueueImport.objects.select_for_update(skip_locked=True, of=("self",))
            job = locked.select_related("queue__owner").filter(pk=job_id).first()
            if job is None or not job.working:
                return
            if job.status == Status.CHECKING:
                _check(job)
                return
        _save(job)
    except (SheetError, NotPossibleError) as error:  # the queue takes nothing more, or not so much
        _fail(job_id, str(error))
    except Exception:
        _fail(job_id, "Something went wrong on our side. Try again: what was saved is not saved twice.")
        raise


def rescue() -> None:
    """Start a worker again where none is at work: it died, or the message to it was lost."""
    waiting = QueueImport.objects.filter(
        status__in=[Status.CHECKING, Status.SAVING], started_at__lt=timezone.now() - NOT_STARTED
    )
    for job_id in waiting.values_list("pk", flat=True):
        _send(job_id)


def _check(job: QueueImport) -> None:
    """Read all rows and say what would become of them; save nothing but that."""
    counts, problems, first = Counter[str](), list[list[str]](), list[list[str]]()
    with _rows(job) as rows:
        for some in _in_slices(rows):
            known = _known(job, some)
            choice = senders(job.queue, ())
            for row in some:
                problem = row.problem or _problem(job, row, choice)
                counts["rows"] += 1
                counts["bad" if problem else "known" if row.entry.own_id in known else "new"] += 1
                if problem and len(problems) < MOST_PROBLEMS:
                    problems.append([str(row.number), row.entry.address or row.entry.own_id, problem])
                if not problem and len(first) < SHOWN:
                    first.append(_shown(row))
    if not counts["rows"]:
        raise SheetError("There are no items in the file, only its titles. Add a row for each.")
    job.counts = {"rows": 0, "bad": 0, "known": 0, "new": 0} | counts
    job.counts["good"] = counts["known"] + counts["new"]
    job.problems, job.first, job.status = problems, first, Status.CHECKED
    job.save(update_fields=["counts", "problems", "first", "status"])


def _shown(row: Row) -> list[str]:
    entry = row.entry
    planned = entry.planned_at.strftime("%Y-%m-%d %H:%M") if entry.planned_at else ""
    return [str(row.number), entry.address, (entry.subject or entry.text)[:80], planned, entry.sender]


def _known(job: QueueImport, rows: list[Row]) -> set[str]:
    ids = [row.entry.own_id for row in rows]
    known = Item.objects.filter(queue=job.queue, source=SOURCE, own_id__in=ids)
    return set(known.values_list("own_id", flat=True))


def _problem(job: QueueImport, row: Row, choice: Senders) -> str:
    try:
        check(row.entry, job.queue, {})
        check_sender(row.entry, choice)
        canonical(job.queue.channel, row.entry.address, region=region_of(job.queue.owner))
    except (EntryError, BadAddressError) as error:
        return str(error)
    return ""


def _save(job: QueueImport) -> None:
    """Save the good rows in slices, and count what became of them."""
    counts, problems = Counter[str](), list[list[str]]()
    with _rows(job) as rows:
        for some in _in_slices(rows):
            good = [row for row in some if not row.problem]
            counts["refused"] += len(some) - len(good)
            results = put(job.queue, [row.entry for row in good], source=SOURCE, by=None)
            _count(counts, problems, good, results)
            QueueImport.objects.filter(pk=job.pk).update(
                saved_rows=sum(counts.values()), started_at=timezone.now()
            )
    with transaction.atomic():
        job = QueueImport.objects.select_for_update(of=("self",)).get(pk=job.pk)
        if job.status != Status.SAVING:
            return
        job.counts |= {took.value: counts[took.value] for took in Took}
        job.problems, job.status, job.finished_at = problems or job.problems, Status.DONE, timezone.now()
        storage, kept = job.file.storage, str(job.file.name)
        transaction.on_commit(lambda: storage.delete(kept), robust=True)
        job.file = ""
        job.save()


def _count(counts: Counter[str], problems: list[list[str]], rows: list[Row], results: list[Result]) -> None:
    for row, result in zip(rows, results, strict=True):
        counts[result.took.value] += 1
        if result.why and len(problems) < MOST_PROBLEMS:
            problems.append([str(row.number), row.entry.address or row.entry.own_id, result.why])


@contextmanager
def _rows(job: QueueImport) -> Iterator[Iterator[Row]]:
    """Open the file of an import; yield its rows, up to as many as an import may have."""
    with job.file.open("rb") as file, opened(_binary(file), Format(**job.format)) as sheet:
        yield _limited(rows_of(job, sheet))


def _limited(rows: Iterator[Row]) -> Iterator[Row]:
    most = settings.IMPORT_MAX_ROWS
    for count, row in enumerate(rows, start=1):
        if count > most:
            raise SheetError(f"The file has more than {most:,} rows. Split it, and import the parts.")
        yield row


def _in_slices(rows: Iterator[Row]) -> Iterator[list[Row]]:
    while some := list(islice(rows, SLICE)):
        yield some


def _fail(job_id: int, problem: str) -> None:
    QueueImport.objects.filter(pk=job_id).update(status=Status.FAILED, problem=problem[:500])


def _move(job: QueueImport, status: QueueImport.Status, *, among: tuple[QueueImport.Status, ...]) -> None:
    """Change the stage in one statement, so that the second of two clicks finds the import in another stage."""
    now = timezone.now()
    rows = QueueImport.objects.filter(pk=job.pk, status__in=among)
    if not rows.update(status=status, problem="", started_at=now):
        raise WrongStageError("The import has changed meanwhile. Open it again.")
    job.status, job.problem, job.started_at = status, "", now


def _begin(job: QueueImport) -> None:
    if job.file.size <= AT_ONCE:
        work(job.pk)
        job.refresh_from_db()
    else:
        _send(job.pk)


def _send(job_id: int) -> None:
    """Queue the import. When the broker is away, a later rescue queues it."""
    transaction.on_commit(
        lambda: publish(
            lambda: app.send_task(TASK, (job_id,), expires=int(NOT_STARTED.total_seconds())),
            delayed="Saved. The import starts as soon as the queue answers again.",
        )
    )


def _binary(file: "File[bytes]") -> BinaryIO:
    """Return the file that Django's wrapper holds."""
    return cast("BinaryIO", file.file)
