"""The stages of an import: uploaded, described, checked, confirmed, saved. Each change of stage happens once."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import cache
from itertools import islice
from time import thread_time
from typing import BinaryIO, cast

import structlog
from django.core.files.base import File
from django.db import transaction
from django.utils import timezone

from accounts.imports import progress
from accounts.imports.check import check
from accounts.imports.columns import guess
from accounts.imports.save import save
from accounts.imports.sheets import MOST_COLUMNS, Format, SheetError, detect, from_first_filled, opened
from accounts.models import Import, User
from accounts.regions import region_of
from activity import counters
from audit.record import record
from config.celery import app
from config.long_tasks import long_tasks
from config.redis.publishing import publish
from config.shares import NoPlaceError, Shares

log = structlog.get_logger(__name__)

TASK = "accounts.import"
SAMPLE_ROWS = 20
LONGEST_SAMPLE = 10.0  # seconds of the processor
KEPT_DAYS = 30
AT_ONCE = 128 * 1024  # bytes: a smaller file is checked sooner than a worker would start
NOT_STARTED = timedelta(seconds=20)
RESCUED_EVERY = 20  # seconds

Status = Import.Status
WORKING = (Status.CHECKING, Status.SAVING)


class WrongStageError(ValueError):
    """The import is not in the stage that this needs. The text says what to do."""


def upload(owner: User, file: "File[bytes]", *, filename: str, by: User) -> Import:
    """Store the file and guess its contents. Raises SheetError; then nothing is stored."""
    with _place(by):
        found = detect(_binary(file))
        rows = sample(_binary(file), found)
    region = region_of(owner)
    guessed = guess(rows, region=region)
    _forget_old(owner)
    job = Import(
        owner=owner,
        made_by=by,
        filename=filename[-255:],
        format={"kind": found.kind, "encoding": found.encoding, "delimiter": found.delimiter},
        channel=guessed.channel,
        region=region,
        header=guessed.header,
        columns=[
            {"title": column.title[:100], "means": column.means, "variable": column.variable}
            for column in guessed.columns
        ],
    )
    try:
        job.file.save(f"{owner.pk}-{timezone.now():%Y%m%d%H%M%S%f}.{found.kind}", file, save=False)
    except OSError as error:
        log.exception("import_not_stored")
        raise SheetError("The file could not be stored. Nothing was saved. Try again in a minute.") from error
    with transaction.atomic():
        job.save()
        record("import.uploaded", job, by=by)
    return job


def sample(file: BinaryIO, found: Format) -> list[list[str]]:
    """Return the first rows of the table, titles included. Raises SheetError."""
    with opened(file, found) as sheet:
        rows = [cells for _, cells in islice(from_first_filled(_in_time(sheet)), SAMPLE_ROWS + 1)]
    if not rows:
        raise SheetError("The first sheet is empty. Choose a file with one recipient per row.")
    if max(len(cells) for cells in rows) > MOST_COLUMNS:
        raise SheetError(f"The file has more than {MOST_COLUMNS} columns. Keep those that are needed.")
    return rows


def sample_of(job: Import, *, by: User) -> list[list[str]]:
    """Return the first rows of a stored file, titles included. Raises SheetError."""
    with _place(by), job.file.open("rb") as file:
        return sample(_binary(file), Format(**job.format))


def _in_time(rows: Iterable[list[str]]) -> Iterator[list[str]]:
    """Yield the rows; raise SheetError where finding the first ones keeps the processor busy for too long."""
    ends = thread_time() + LONGEST_SAMPLE
    for row in rows:
        if thread_time() > ends:
            raise SheetError(
                "The table does not begin within the first rows. Delete the empty rows above it."
            )
        yield row


@cache
def readings() -> Shares:
    """Return the places for reading files while somebody waits for the page: this keeps a processor busy."""
    return Shares(total=4, each=1)


@contextmanager
def _place(by: User) -> Iterator[None]:
    try:
        with readings().place(by.pk):
            yield
    except NoPlaceError as error:
        raise SheetError("Other files are being read right now. Try again in a minute.") from error


def start_check(job: Import) -> None:
    """Check every row: a small file at once, a large one by a worker."""
    with transaction.atomic():
        _move(job, Status.CHECKING, among=(Status.DRAFT, Status.CHECKED, Status.FAILED))
        record("import.changed", job, after={"columns": [column["means"] for column in job.columns]})
    _begin(job)


def confirm(job: Import) -> None:
    """Save the checked rows. A second confirmation does nothing."""
    if job.status in {Status.SAVING, Status.DONE}:
        return
    if not job.counts.get("new", 0) + job.counts.get("known", 0):
        raise WrongStageError("No row of the file can be saved. Correct the file, and import it again.")
    with transaction.atomic():
        _move(job, Status.SAVING, among=(Status.CHECKED,))
        record("recipients.imported", job, after=job.counts)
    _begin(job)


def reconsider(job: Import) -> None:
    """Go back to the columns. Waits for a worker that has begun."""
    _move(job, Status.DRAFT, among=(Status.CHECKED, Status.FAILED, Status.DRAFT))


def discard(job: Import) -> None:
    """Delete the file and its rows. Recipients that were saved stay."""
    if job.working and progress.progress_of(job.pk) is not None:
        raise WrongStageError("The import is in progress. Wait until it has finished.")
    job.file.delete(save=False)
    with transaction.atomic():
        record("import.discarded", job)
        job.delete()


def work(job_id: int) -> None:
    """Do the next step of the import. A second worker finds the import locked or done, and returns."""
    try:
        with transaction.atomic():
            job = Import.objects.select_for_update(skip_locked=True).filter(pk=job_id).first()
            if job is None or not job.working:
                return
            _work(job)
        progress.forget(job_id)
    except SheetError as error:
        _fail(job_id, str(error))
    except Exception:
        _fail(
            job_id,
            "Something went wrong on our side, and nothing was saved. Try again; the log has the details.",
        )
        raise


def work_in_turn(job_id: int) -> None:
    """Do the next step of the import in a worker: only a few imports of one owner run at once.

    An import that has to wait starts when another one ends, or with the next rescue.
    """
    owner = Import.objects.filter(pk=job_id).values_list("owner", flat=True).first()
    if owner is None or long_tasks().take(owner):
        return
    try:
        work(job_id)
    finally:
        long_tasks().give_back(owner)
        _send_next()


def _send_next() -> None:
    """Start the longest-waiting import of each owner, for a few owners."""
    waiting = Import.objects.filter(status__in=WORKING).order_by("owner", "started_at").distinct("owner")
    oldest = Import.objects.filter(pk__in=waiting.values("pk")).order_by("started_at")
    for job_id in oldest.values_list("pk", flat=True)[: long_tasks().total]:
        _send(job_id, expires=RESCUED_EVERY)


def stalled(job: Import) -> bool:
    """Return whether the import waits and no worker has begun: none is running, or the one that began has died."""
    begun = job.started_at is not None and timezone.now() - job.started_at < NOT_STARTED
    return job.working and not begun and progress.progress_of(job.pk) is None


def rescue() -> list[int]:
    """Start a worker again where none is at work: it died, or the message to it was lost.

    A worker locks the row of its import, and the database releases the locks of a dead worker. Messages sent in vain,
    because every worker is busy, expire before the next rescue.
    """
    waiting = Import.objects.filter(status__in=WORKING, started_at__lt=timezone.now() - NOT_STARTED)
    with transaction.atomic():
        left = list(waiting.select_for_update(skip_locked=True, of=("self",)).values_list("pk", flat=True))
    for job_id in left:
        _send(job_id, expires=RESCUED_EVERY)
    if left:
        log.warning("imports_rescued", jobs=left)
    return left


def _work(job: Import) -> None:
    started = timezone.now()
    if job.status == Status.CHECKING:
        check(job)
        job.status = Status.CHECKED
    else:
        save(job)
        job.status, job.finished_at = Status.DONE, timezone.now()
        storage, kept = job.file.storage, str(job.file.name)
        # Robust: a bucket that is away now must not turn what was saved into a failure.
        transaction.on_commit(lambda: storage.delete(kept), robust=True)
        job.file = ""
    job.problem = ""
    job.save()
    seconds = round((timezone.now() - started).total_seconds(), 2)
    counters.tell(
        "imports", reason=str(job.status), job=job.pk, owner=job.owner_id, seconds=seconds, **job.counts
    )
    for outcome in ("added", "updated", "left"):
        counters.tell("imported_rows", reason=outcome, number=job.counts.get(outcome, 0), job=job.pk)


def _fail(job_id: int, problem: str) -> None:
    progress.forget(job_id)
    Import.objects.filter(pk=job_id).update(status=Status.FAILED, problem=problem[:500])
    counters.tell("imports", reason="failed", job=job_id, problem=problem)


def _move(job: Import, status: Import.Status, *, among: tuple[Import.Status, ...]) -> None:
    """Change the stage in one statement, so that the second of two clicks finds the import in another stage."""
    now = timezone.now()
    moved = Import.objects.filter(pk=job.pk, status__in=among).update(
        status=status, problem="", started_at=now
    )
    if not moved:
        raise WrongStageError("The import has changed meanwhile. Open it again.")
    job.status, job.problem, job.started_at = status, "", now


def _begin(job: Import) -> None:
    if job.file.size <= AT_ONCE:
        work(job.pk)
        job.refresh_from_db()
    else:
        _send(job.pk)


def _send(job_id: int, *, expires: int | None = None) -> None:
    """Queue the import. When the broker is away, a later rescue queues it."""
    transaction.on_commit(
        lambda: publish(
            lambda: app.send_task(TASK, (job_id,), expires=expires),
            delayed="Saved. The import starts as soon as the queue answers again.",
        )
    )


def _forget_old(owner: User) -> None:
    """Delete old rows: they are kept for their report, but not for ever."""
    old = Import.objects.filter(owner=owner, created_at__lt=timezone.now() - timedelta(days=KEPT_DAYS))
    for job in old.exclude(status__in=WORKING):
        discard(job)


def _binary(file: "File[bytes]") -> BinaryIO:
    """Return the file that Django's wrapper holds."""
    return cast("BinaryIO", file.file)
