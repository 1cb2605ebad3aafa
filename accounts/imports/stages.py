"""The life of an import: uploaded, described, checked, confirmed, saved. Each move is made once."""

from datetime import timedelta
from itertools import islice
from typing import BinaryIO, cast

import structlog
from django.core.files.base import File
from django.db import transaction
from django.utils import timezone
from kombu.exceptions import OperationalError
from redis.exceptions import RedisError

from accounts.imports import progress
from accounts.imports.check import check
from accounts.imports.columns import guess
from accounts.imports.save import save
from accounts.imports.sheets import (
    MOST_COLUMNS,
    Format,
    SheetError,
    detect,
    from_first_filled,
    opened,
)
from accounts.models import Import, User
from accounts.regions import region_of
from activity import counters
from config.celery import app

log = structlog.get_logger(__name__)

TASK = "accounts.import"
SAMPLE_ROWS = 20
KEPT_DAYS = 30
AT_ONCE = 128 * 1024  # bytes: what is checked sooner than a worker would begin with it
NOT_STARTED = timedelta(seconds=20)
RESCUED_EVERY = 20  # seconds

Status = Import.Status
WORKING = (Status.CHECKING, Status.SAVING)


class WrongStageError(ValueError):
    """The import is not where this can be done. The text says what to do."""


def upload(owner: User, file: "File[bytes]", *, filename: str, by: User) -> Import:
    """Keep the file, and guess what is in it. Raises SheetError; then nothing is kept."""
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
    job.file.save(f"{owner.pk}-{timezone.now():%Y%m%d%H%M%S%f}.{found.kind}", file, save=False)
    job.save()
    return job


def sample(file: BinaryIO, found: Format) -> list[list[str]]:
    """The first rows of the table, titles included. Raises SheetError."""
    with opened(file, found) as sheet:
        rows = [cells for _, cells in islice(from_first_filled(sheet), SAMPLE_ROWS + 1)]
    if not rows:
        raise SheetError("The first sheet is empty. Choose a file with one recipient per row.")
    if max(len(cells) for cells in rows) > MOST_COLUMNS:
        raise SheetError(f"The file has more than {MOST_COLUMNS} columns. Keep those that are needed.")
    return rows


def sample_of(job: Import) -> list[list[str]]:
    """The first rows of a kept file, titles included."""
    with job.file.open("rb") as file:
        return sample(_binary(file), Format(**job.format))


def start_check(job: Import) -> None:
    """Check every row: a small file at once, a large one by a worker."""
    _move(job, Status.CHECKING, among=(Status.DRAFT, Status.CHECKED, Status.FAILED))
    _begin(job)


def confirm(job: Import) -> None:
    """Save what was checked. A second confirmation does nothing."""
    if job.status in {Status.SAVING, Status.DONE}:
        return
    if not job.counts.get("new", 0) + job.counts.get("known", 0):
        raise WrongStageError("No row of the file can be saved. Correct the file, and import it again.")
    _move(job, Status.SAVING, among=(Status.CHECKED,))
    _begin(job)


def reconsider(job: Import) -> None:
    """Back to the columns. What is being worked on is waited for."""
    _move(job, Status.DRAFT, among=(Status.CHECKED, Status.FAILED, Status.DRAFT))


def discard(job: Import) -> None:
    """Forget the file and its rows. Recipients that were saved stay."""
    if job.working and progress.progress_of(job.pk) is not None:
        raise WrongStageError("The import is being worked on. Wait until it has finished.")
    job.file.delete(save=False)
    job.delete()


def work(job_id: int) -> None:
    """Do what the import waits for. Whoever comes second finds it taken or done, and leaves."""
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


def stalled(job: Import) -> bool:
    """It waits, and nobody has begun: no worker is running, or the one that had begun died."""
    begun = job.started_at is not None and timezone.now() - job.started_at < NOT_STARTED
    return job.working and not begun and progress.progress_of(job.pk) is None


def rescue() -> list[int]:
    """Send for a worker again where none is at work: it died, or the message to it was lost.

    Whoever works on an import holds its row, and a database lets go of what a dead worker held. What all this
    sends in vain, since every worker is busy, is forgotten before the next rescue.
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
        transaction.on_commit(lambda: storage.delete(kept))
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
    """By one statement, so that of two clicks one finds the import elsewhere already."""
    now = timezone.now()
    moved = Import.objects.filter(pk=job.pk, status__in=among).update(
        status=status, problem="", started_at=now
    )
    if not moved:
        raise WrongStageError("The import has gone on meanwhile. Look again where it is.")
    job.status, job.problem, job.started_at = status, "", now


def _begin(job: Import) -> None:
    if job.file.size <= AT_ONCE:
        work(job.pk)
        job.refresh_from_db()
    else:
        _send(job.pk)


def _send(job_id: int, *, expires: int | None = None) -> None:
    """What a broker that is away does not take is rescued later."""

    def send() -> None:
        try:
            app.send_task(TASK, (job_id,), expires=expires)
        except (RedisError, OperationalError):
            log.warning("broker_away", job=job_id)

    transaction.on_commit(send)


def _forget_old(owner: User) -> None:
    """Rows are kept for their report, and not for ever."""
    old = Import.objects.filter(owner=owner, created_at__lt=timezone.now() - timedelta(days=KEPT_DAYS))
    for job in old.exclude(status__in=WORKING):
        discard(job)


def _binary(file: "File[bytes]") -> BinaryIO:
    """What Django's wrapper is around."""
    return cast("BinaryIO", file.file)
