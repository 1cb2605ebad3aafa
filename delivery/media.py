"""Media files of a run: uploaded once per run and account, wherever the transport has handles (SPEC M2)."""

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotYet
from dataclasses import dataclass
from typing import BinaryIO, cast

from django.core.files.storage import default_storage
from django.db import connection

from accounts.models import Account
from delivery.models import MediaHandle, Run
from delivery.outcomes import Outcome, Sent
from delivery.parts import FrozenPart, thaw
from delivery.transports.base import Media, Transport, Uploaded
from delivery.wire import wire


@dataclass(frozen=True, slots=True, kw_only=True)
class NotUploaded:
    """The service did not take a file."""

    filename: str
    outcome: Outcome

    def sentence(self) -> str:
        reason = "" if isinstance(self.outcome, Sent) else self.outcome.reason
        return f"The service did not take the file {self.filename}: {reason}. Replace the file, then resume."


def open_file(name: str) -> BinaryIO:
    """A stored file, by its name in the storage: the file itself, since the network takes no Django `File`."""
    return cast("BinaryIO", default_storage.open(name, "rb").file)


def handles(
    run: Run, account: Account, transport: Transport, *, keep_alive: Callable[[], None]
) -> Mapping[str, str] | NotUploaded:
    """The handle of every media file of the run, by content; what has none yet is uploaded first.

    Only the account's one pump comes here, before it claims a target: so each file goes up once, and all that
    need it wait. The rows outlive the worker.
    """
    if not transport.capabilities.media_handles:
        return {}
    known = dict(MediaHandle.objects.filter(run=run, account=account).values_list("sha256", "handle"))
    for part in thaw(run.parts):
        if part.kind == "media" and part.sha256 not in known:
            connection.close()  # back to the pool: a large file takes minutes
            uploaded = _upload(part, transport, keep_alive)
            if not isinstance(uploaded, Uploaded):
                return NotUploaded(filename=part.filename, outcome=uploaded)
            MediaHandle.objects.get_or_create(
                run=run, account=account, sha256=part.sha256, defaults={"handle": uploaded.handle}
            )
            known[part.sha256] = uploaded.handle
    return known


def _upload(part: FrozenPart, transport: Transport, keep_alive: Callable[[], None]) -> Uploaded | Outcome:
    media = Media(
        sha256=part.sha256,
        filename=part.filename,
        content_type=part.content_type,
        open=lambda: open_file(part.file),
    )
    future: Future[Uploaded | Outcome] = wire().start(transport.upload(media))
    while True:
        try:
            return future.result(timeout=2)
        except (TimeoutError, NotYet):
            if future.done():
                raise
            keep_alive()
