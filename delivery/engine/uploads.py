"""Uploads the media files of a run, once per run and account, where the transport has handles (SPEC M2)."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import BinaryIO, Final, cast

from django.conf import settings
from django.core.files.storage import default_storage
from redis import Redis

from accounts.models import Account
from config.redis.client import client
from delivery.conf import retry_rules
from delivery.engine.lease import lease_key
from delivery.engine.loop import send_loop
from delivery.models import MediaHandle, Run
from delivery.outcomes import Outcome, Rejected, Sent, ServerError
from delivery.parts import FrozenPart, thaw
from delivery.transports.base import Media, Transport, Uploaded


@dataclass(frozen=True, slots=True, kw_only=True)
class NotUploaded:
    """The service did not take a file; `attempt` is which failure in a row that was, as `retry.decide` wants it."""

    filename: str
    outcome: Outcome
    attempt: int

    def sentence(self) -> str:
        reason = "" if isinstance(self.outcome, Sent) else self.outcome.reason
        remedy = (
            "Replace the file, then resume" if isinstance(self.outcome, Rejected) else "Resume to try again"
        )
        return f"The service did not take the file {self.filename}: {reason}. {remedy}."


@dataclass(frozen=True, slots=True, kw_only=True)
class NotReadable:
    """A file of the run that this worker cannot read; the service is not the cause."""

    filename: str

    def sentence(self) -> str:
        place, need = (
            ("the bucket of MEDIA_BUCKET", "bucket") if settings.MEDIA_BUCKET else ("MEDIA_ROOT", "folder")
        )
        return (
            f"The worker cannot read the file {self.filename} in {place}. The run waits, and continues by itself "
            f"once the file can be read: web and workers need the same {need}."
        )


def unreadable(run: Run) -> NotReadable | None:
    """Return the first file of the run that cannot be read here."""
    for part in thaw(run.parts):
        if part.kind == "media":
            try:
                open_file(part.file).close()
            except OSError:
                return NotReadable(filename=part.filename)
    return None


def open_file(name: str) -> BinaryIO:
    """Open a stored file by its name; return the raw file, since the network takes no Django `File`."""
    return cast("BinaryIO", default_storage.open(name, "rb").file)


async def handles(
    run: Run, account: Account, transport: Transport
) -> dict[str, str] | NotUploaded | NotReadable:
    """Return the handle of every media file of the run, by content; upload the files that have none yet.

    Only the account's one pump comes here, before it claims a target: so each file goes up once, and all that
    need it wait. The rows outlive the worker.
    """
    batches = send_loop().batches
    if (blind := await batches.ask(lambda: unreadable(run))) is not None:
        return blind
    if not transport.capabilities.media_handles:
        return {}
    found = await batches.ask(lambda: known(run.pk, account))
    for part in thaw(run.parts):
        if part.kind == "media" and part.sha256 not in found:
            uploaded = await transport.upload(as_media(part))
            if not isinstance(uploaded, Uploaded):
                attempt = await batches.ask(lambda: _another_failure(account))
                return NotUploaded(filename=part.filename, outcome=uploaded, attempt=attempt)
            found[part.sha256] = uploaded.handle
            await batches.ask(partial(_remember, run.pk, account, part.sha256, uploaded.handle))
    return found


async def upload_own(
    run_id: int, account: Account, transport: Transport, parts: Sequence[FrozenPart], found: dict[str, str]
) -> Outcome | None:
    """Upload the files of one target, adding their handles to `found`; return why not, as the result of its message.

    A file that cannot be uploaded fails this target alone: others have files of their own.
    """
    if not transport.capabilities.media_handles:
        return None
    for part in parts:
        if part.kind == "media" and part.sha256 not in found:
            try:
                uploaded = await transport.upload(as_media(part))
            except OSError:
                return ServerError(reason=f"the worker cannot read the file {part.filename}")
            if not isinstance(uploaded, Uploaded):
                return uploaded
            found[part.sha256] = uploaded.handle
            keep = partial(_remember, run_id, account, part.sha256, uploaded.handle)
            await send_loop().batches.ask(keep)
    return None


def known(run_id: int, account: Account) -> dict[str, str]:
    """Return the handles that the account has for files of a run, by their content."""
    return dict(MediaHandle.objects.filter(run=run_id, account=account).values_list("sha256", "handle"))


def _another_failure(account: Account) -> int:
    return another(client(), account.pk, most=retry_rules().max_attempts)


def _remember(run_id: int, account: Account, sha256: str, handle: str) -> None:
    over(client(), account.pk)
    MediaHandle.objects.get_or_create(
        run_id=run_id, account=account, sha256=sha256, defaults={"handle": handle}
    )


def as_media(part: FrozenPart) -> Media:
    return Media(
        sha256=part.sha256,
        filename=part.filename,
        content_type=part.content_type,
        open=lambda: open_file(part.file),
    )


# Failures that lie further apart than the longest wait between them have nothing to do with each other.
FORGOTTEN_AFTER: Final = 6 * 3600


def another(redis: Redis, account_id: int, *, most: int) -> int:
    """Count a failure; return its number in a row, from 1. After the failure number `most` the count starts anew."""
    key = _key(account_id)
    with redis.pipeline() as pipe:
        pipe.incr(key)
        pipe.expire(key, FORGOTTEN_AFTER)
        attempt = int(pipe.execute()[0])
    if attempt >= most:
        redis.delete(key)
    return attempt


def over(redis: Redis, account_id: int) -> None:
    """Forget the failures: a file was uploaded."""
    redis.delete(_key(account_id))


def _key(account_id: int) -> str:
    return f"{lease_key(account_id).removesuffix('lease')}upload-failures"
