"""Media files of a run: uploaded once per run and account, wherever the transport has handles (SPEC M2)."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import BinaryIO, cast

from django.core.files.storage import default_storage

from accounts.models import Account
from config.redis import client
from delivery import upload_failures
from delivery.knobs import retry_knobs
from delivery.models import MediaHandle, Run
from delivery.outcomes import Outcome, Rejected, Sent
from delivery.parts import FrozenPart, thaw
from delivery.transports.base import Media, Transport, Uploaded
from delivery.wire import wire


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


def open_file(name: str) -> BinaryIO:
    """A stored file, by its name in the storage: the file itself, since the network takes no Django `File`."""
    return cast("BinaryIO", default_storage.open(name, "rb").file)


async def handles(run: Run, account: Account, transport: Transport) -> Mapping[str, str] | NotUploaded:
    """The handle of every media file of the run, by content; what has none yet is uploaded first.

    Only the account's one pump comes here, before it claims a target: so each file goes up once, and all that
    need it wait. The rows outlive the worker.
    """
    if not transport.capabilities.media_handles:
        return {}
    clerk = wire().clerk
    known = await clerk.ask(lambda: _known(run, account))
    for part in thaw(run.parts):
        if part.kind == "media" and part.sha256 not in known:
            uploaded = await transport.upload(as_media(part))
            if not isinstance(uploaded, Uploaded):
                attempt = await clerk.ask(lambda: _another_failure(account))
                return NotUploaded(filename=part.filename, outcome=uploaded, attempt=attempt)
            known[part.sha256] = uploaded.handle
            await clerk.ask(partial(_remember, run, account, part.sha256, uploaded.handle))
    return known


def _known(run: Run, account: Account) -> dict[str, str]:
    return dict(MediaHandle.objects.filter(run=run, account=account).values_list("sha256", "handle"))


def _another_failure(account: Account) -> int:
    return upload_failures.another(client(), account.pk, most=retry_knobs().max_attempts)


def _remember(run: Run, account: Account, sha256: str, handle: str) -> None:
    upload_failures.over(client(), account.pk)
    MediaHandle.objects.get_or_create(run=run, account=account, sha256=sha256, defaults={"handle": handle})


def as_media(part: FrozenPart) -> Media:
    return Media(
        sha256=part.sha256,
        filename=part.filename,
        content_type=part.content_type,
        open=lambda: open_file(part.file),
    )
