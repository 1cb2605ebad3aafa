"""Answers a repeated POST with the first answer, and does its work once.

The name that the client gives (`Idempotency-Key`), the work and the answer are written in one transaction:

1. Insert the row with the name. Of two requests at once, the second waits here until the first has committed.
2. The row is new: do the work, write the answer into the row, and commit both. A process that dies before the
   commit leaves neither, so the client's next try does the work.
3. The row exists: give its answer again if the request is the same, else refuse with 409.

An answer is kept for 24 hours, encrypted: it may show the secret of a new webhook. Answers that say nothing about the
work (401, 403, 429, 5xx) are not kept.
"""

import hashlib
import re
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from django.db import OperationalError, connection, transaction
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from psycopg.errors import LockNotAvailable

from accounts.encryption import UnreadableSecretError
from api.models import ApiKey, StoredAnswer
from api.problems import invalid, refusal

HEADER = "Idempotency-Key"
NAME = re.compile(r"[!-~]{1,255}")
KEPT = timedelta(hours=24)
KEPT_STATUSES = frozenset({200, 201, 202, 204, 404, 409, 413, 422})
PATIENCE = "20s"  # for the first of two equal requests
AT_ONCE = 10_000

Work = Callable[[], HttpResponse]


def name_of(request: HttpRequest) -> str:
    """Return the name that the client gave the request, or ''; raises a problem for one that cannot be stored."""
    name = request.headers.get(HEADER)
    if name is None:
        return ""
    if not NAME.fullmatch(name):  # an empty one, too: a program that sends it believes that it is protected
        raise invalid(
            HEADER, "An Idempotency-Key has 1 to 255 plain characters without spaces, such as a UUID."
        )
    return name


def fingerprint_of(request: HttpRequest) -> str:
    """Return a hash of what the request asks for. The parts of a form have a random border, so its files are hashed."""
    digest = hashlib.sha256(f"{request.method} {request.get_full_path()}\n".encode())
    if request.content_type == "multipart/form-data":
        for name, value in sorted(request.POST.items()):
            digest.update(f"{name}={value}\n".encode())
        for name in sorted(request.FILES):
            for file in request.FILES.getlist(name):
                digest.update(f"{name}:{file.name}\n".encode())
                for chunk in file.chunks():
                    digest.update(chunk)
                file.seek(0)
    else:
        digest.update(request.body)
    return digest.hexdigest()


def once(key: ApiKey, name: str, fingerprint: str, work: Work) -> HttpResponse:
    """Do the work of a request once, in the transaction that also stores its answer; return the answer."""
    with transaction.atomic():
        row = _reserve(key, name, fingerprint)
        if row.status:
            return _again(row, fingerprint)
        response = work()
        _store(row, response)
        return response


def remember(key: ApiKey, name: str, fingerprint: str, work: Work) -> HttpResponse:
    """Do work that is safe to repeat, such as storing a file, outside a transaction; then store its answer."""
    if known := _known(key, name):
        return _again(known, fingerprint)
    response = work()
    with transaction.atomic():
        row = _reserve(key, name, fingerprint)
        if row.status:
            return _again(row, fingerprint)
        _store(row, response)
    return response


def forget(*, now: datetime) -> int:
    """Delete the answers that are older than 24 hours, in slices; return how many there were."""
    old, gone = StoredAnswer.objects.filter(created_at__lt=now - KEPT), 0
    while True:
        ids = list(old.order_by("created_at").values_list("pk", flat=True)[:AT_ONCE])
        gone += StoredAnswer.objects.filter(pk__in=ids).delete()[0]
        if len(ids) < AT_ONCE:
            return gone


def _known(key: ApiKey, name: str) -> StoredAnswer | None:
    fresh = StoredAnswer.objects.filter(created_at__gte=timezone.now() - KEPT)
    return fresh.filter(key=key, name=name).first()


# A name that is older than a day is free again: its row is used for the new request.
RESERVE = """
INSERT INTO api_storedanswer AS a (key_id, name, fingerprint, status, content_type, body, created_at)
VALUES (%(key)s, %(name)s, %(fingerprint)s, 0, '', '', %(now)s) ON CONFLICT (key_id, name) DO UPDATE
SET fingerprint = excluded.fingerprint, status = 0, content_type = '', body = '', created_at = excluded.created_at
WHERE a.created_at < %(old)s
RETURNING id
"""


def _reserve(key: ApiKey, name: str, fingerprint: str) -> StoredAnswer:
    """Return the row of this name: a new one with status 0, or the one that an equal request has committed.

    The time to wait for locks holds for the rest of the transaction too: a request that waits longer is answered with
    503, and can be repeated.
    """
    now = timezone.now()
    values: dict[str, Any] = {
        "key": key.pk,
        "name": name,
        "fingerprint": fingerprint,
        "now": now,
        "old": now - KEPT,
    }
    try:
        with connection.cursor() as cursor:
            cursor.execute(f"SET LOCAL lock_timeout = '{PATIENCE}'")
            cursor.execute(RESERVE, values)
            made = cursor.fetchone()
    except OperationalError as error:
        if isinstance(error.__cause__, LockNotAvailable):
            raise refusal(
                409,
                "in-progress",
                "The first request with this Idempotency-Key is still being answered. Try again in a few seconds.",
                headers={"Retry-After": "5"},
            ) from error
        raise
    if made is None:
        return StoredAnswer.objects.get(key=key, name=name)
    return StoredAnswer(pk=made[0], key=key, name=name, fingerprint=fingerprint, created_at=now)


def _again(row: StoredAnswer, fingerprint: str) -> HttpResponse:
    if row.fingerprint != fingerprint:
        raise refusal(
            409,
            "idempotency-key-reused",
            "This Idempotency-Key was used for another request. Give each request a key of its own.",
        )
    headers = {"Idempotency-Replayed": "true"}
    return HttpResponse(_body_of(row), status=row.status, content_type=row.content_type, headers=headers)


def _body_of(row: StoredAnswer) -> str:
    try:
        return row.body["text"]
    except UnreadableSecretError as error:
        raise refusal(
            409,
            "wrong-state",
            "This request was done, and its answer cannot be read any more. Look at what it made; do not repeat it.",
        ) from error


def _store(row: StoredAnswer, response: HttpResponse) -> None:
    """Keep the answer, or forget the name where the answer says nothing about the work."""
    if response.status_code not in KEPT_STATUSES:
        row.delete()
        return
    row.status, row.body = response.status_code, {"text": response.content.decode()}
    row.content_type = response.headers.get("Content-Type", "")
    row.save(update_fields=["status", "body", "content_type"])
