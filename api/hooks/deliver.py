"""Delivers the events of one webhook: signed, at least once, those of one sequence in their order.

1. Claim the first due event of each of some sequences; a claim lasts longer than a request, so that an event of a
   worker that died is tried again, and no later event of its sequence goes ahead of it.
2. Post them side by side, without a transaction and without a database connection.
3. Write down each answer. 2xx is delivered; anything else is tried again, later each time, for three days.
4. Go on until nothing is due, the time is up, or the receiver fails several times in a row: then it rests. One that
   asks for a pause (Retry-After) gets it, but for no longer than our own longest one.

A receiver that took nothing for three days, or says that it is gone (410), is switched off, and its owner is told. All
batches of a shift share one loop and its connections: making both anew for each cost the sending beside it its pace.
"""

import asyncio
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random
from typing import Any, Self

import aiohttp
import structlog
from django.conf import settings
from django.db import connection, transaction
from django.utils import timezone
from standardwebhooks import Webhook as Signer
from yarl import URL

from accounts.encryption import UnreadableSecretError
from accounts.models import Delivery, Webhook
from accounts.outbox import KEPT_TRYING
from activity.models import Notification
from activity.notify import tell
from activity.storable import storable
from api.hooks import leavers, manage, retries
from delivery.sessions import calls
from delivery.transports.http.exchange import (
    Answer,
    Request,
    Unanswered,
    exchange,
    open_session,
    retry_after,
)
from delivery.transports.networks.allowed import allowed_networks

log = structlog.get_logger(__name__)

AT_ONCE = 4  # requests to one receiver
BATCH = 12  # events of one batch, while the receiver takes them: fewer statements for each
CONNECT_SECONDS, TIMEOUT_SECONDS = 5, 15
CLAIMED = timedelta(seconds=60)
BUSY = timedelta(seconds=60)  # longer than a batch; a worker that died gives its webhook back after this
SHIFT_SECONDS = 20.0
LOOKED_AT = 200  # due events, to find the first of each sequence
FAILURES_IN_A_ROW = 3
KEPT_ANSWER = 1_000
GONE = 410
BUSY_STATUSES = frozenset({429, 503})  # their Retry-After is kept


@dataclass(frozen=True, slots=True)
class Tried:
    """One event and what came back, and for how many seconds the receiver wants to be left alone."""

    delivery: Delivery
    status: int | None
    answer: str
    rest: float = 0.0

    @property
    def ok(self) -> bool:
        return self.status is not None and 200 <= self.status < 300


def serve(webhook_id: int, *, rng: Random) -> int:
    """Deliver what is due for a webhook that this worker has; return how many were delivered."""
    until, delivered, most = time.monotonic() + SHIFT_SECONDS, 0, AT_ONCE
    try:
        with Posting() as posting:
            while time.monotonic() < until:
                webhook = _still_mine(webhook_id)
                if webhook is None or not (claimed := _claim(webhook, most, now=timezone.now())):
                    break
                tried = posting.post(webhook, claimed)
                delivered += sum(each.ok for each in tried)
                most = BATCH if all(each.ok for each in tried) else AT_ONCE
                if not _write_down(webhook_id, tried, now=timezone.now(), rng=rng):
                    break
    finally:
        Webhook.objects.filter(pk=webhook_id).update(busy_until=None, served_at=timezone.now())
    return delivered


def _still_mine(webhook_id: int) -> Webhook | None:
    """Hold the webhook for another batch; return None where it is switched off, deleted or resting."""
    now = timezone.now()
    rows = Webhook.objects.filter(pk=webhook_id, switched_off_at=None).exclude(retry_at__gt=now)
    kept = rows.exclude(pk__in=leavers.forsaken().filter(pk=webhook_id).values("pk"))
    return rows.first() if kept.update(busy_until=now + BUSY) else None


# The candidates are few: those of a sequence whose first event waits for its next try wait with it (`_hold_back`).
CLAIM = """
WITH due AS MATERIALIZED (
    SELECT id, sequence FROM accounts_delivery
    WHERE webhook_id = %(webhook)s AND state = 'pending' AND next_try_at <= %(now)s
    ORDER BY next_try_at, id LIMIT %(looked_at)s
), first AS (
    SELECT d.id FROM due d
    WHERE d.sequence = '' OR NOT EXISTS (
        SELECT 1 FROM accounts_delivery e
        WHERE e.webhook_id = %(webhook)s AND e.sequence = d.sequence AND e.state = 'pending' AND e.id < d.id
    )
    ORDER BY d.id LIMIT %(most)s
)
UPDATE accounts_delivery SET next_try_at = %(again)s, attempts = attempts + 1
WHERE id IN (SELECT id FROM accounts_delivery WHERE id IN (SELECT id FROM first) FOR UPDATE SKIP LOCKED)
  AND state = 'pending' AND next_try_at <= %(now)s
RETURNING id
"""


def _claim(webhook: Webhook, most: int, *, now: datetime) -> list[Delivery]:
    with connection.cursor() as cursor:
        arguments: dict[str, Any] = {
            "webhook": webhook.pk,
            "now": now,
            "again": now + CLAIMED,
            "looked_at": LOOKED_AT,
            "most": most,
        }
        cursor.execute(CLAIM, arguments)
        ids = [row[0] for row in cursor.fetchall()]
    return list(Delivery.objects.filter(pk__in=ids).order_by("pk"))


class Posting:
    """The loop and the connections of one shift."""

    def __init__(self) -> None:
        self._runner = asyncio.Runner()
        self._session: aiohttp.ClientSession | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._session is not None:
            self._runner.run(self._session.close())
        self._runner.close()

    def post(self, webhook: Webhook, claimed: Sequence[Delivery]) -> list[Tried]:
        """Post the events side by side. Nothing of the database is held meanwhile."""
        try:
            requests = [request_of(webhook, delivery, now=timezone.now()) for delivery in claimed]
        except UnreadableSecretError as error:
            return [Tried(delivery, None, str(error)) for delivery in claimed]
        calls.release_connection()
        answers = self._runner.run(self._exchanged(requests))
        return [_tried(delivery, answer) for delivery, answer in zip(claimed, answers, strict=True)]

    async def _exchanged(self, requests: Sequence[Request]) -> list[Answer | Unanswered]:
        if self._session is None:
            self._session = open_session(networks=allowed_networks(settings.PRIVATE_NETWORKS))
        await asyncio.sleep(0.001)  # lets the loop hear of connections that were closed since the last batch
        session, free = self._session, asyncio.Semaphore(AT_ONCE)

        async def ask(request: Request) -> Answer | Unanswered:
            async with free:
                return await exchange(session, request, connect=CONNECT_SECONDS, total=TIMEOUT_SECONDS)

        return list(await asyncio.gather(*map(ask, requests)))


def request_of(webhook: Webhook, delivery: Delivery, *, now: datetime) -> Request:
    """Return the signed request; after a rotation both secrets sign for a day."""
    body = json.dumps(delivery.payload, separators=(",", ":"), ensure_ascii=False)
    name = f"msg_{delivery.key.hex}"
    both = [webhook.secrets["current"]]
    if webhook.secrets["previous"] and webhook.previous_until and now < webhook.previous_until:
        both.append(webhook.secrets["previous"])
    headers = {
        "Content-Type": "application/json",
        "User-Agent": "Paceline-Webhooks",
        "webhook-id": name,
        "webhook-timestamp": str(int(now.timestamp())),
        "webhook-signature": " ".join(Signer(secret).sign(name, now, body) for secret in both),
    }
    return Request(method="POST", url=URL(webhook.url, encoded=True), headers=headers, body=body.encode())


def _tried(delivery: Delivery, answer: Answer | Unanswered) -> Tried:
    if isinstance(answer, Answer):
        text = storable(answer.body[: 4 * KEPT_ANSWER].decode(errors="replace"), KEPT_ANSWER)
        rest = retry_after(answer, now=timezone.now()) or 0.0
        return Tried(delivery, answer.status, text, min(rest, float(retries.LONGEST)))
    return Tried(delivery, None, storable(answer.reason, KEPT_ANSWER))


@transaction.atomic
def _write_down(webhook_id: int, tried: Sequence[Tried], *, now: datetime, rng: Random) -> bool:
    """Write down the answers; return whether to go on at once."""
    webhook = Webhook.objects.select_for_update(no_key=True).filter(pk=webhook_id).first()
    if webhook is None:
        return False
    _end([each for each in tried if each.ok], now)
    for each in tried:
        if not each.ok:
            _again(each, now, rng)
    if any(each.ok for each in tried):
        webhook.failing_since, webhook.failures, webhook.retry_at = None, 0, None
    else:
        webhook.failing_since = webhook.failing_since or now
        webhook.failures += 1
        if webhook.failures >= FAILURES_IN_A_ROW:
            webhook.retry_at = now + retries.pause_after(webhook.failures - FAILURES_IN_A_ROW + 1, rng)
    if asked := max((each.rest for each in tried if each.status in BUSY_STATUSES), default=0.0):
        webhook.retry_at = max(webhook.retry_at or now, now + timedelta(seconds=asked))
    webhook.save(update_fields=["failing_since", "failures", "retry_at"])
    gone = next((each for each in tried if each.status == GONE), None)
    if gone is not None:
        _switch_off(webhook, gone, since=now)
        return False
    if webhook.failing_since is not None and now - webhook.failing_since >= KEPT_TRYING:
        _switch_off(webhook, tried[-1], since=webhook.failing_since)
        return False
    return webhook.retry_at is None


def _end(taken: Sequence[Tried], now: datetime) -> None:
    """Write down the events that were taken, in one statement for those with the same answer."""
    for said in {(each.status, each.answer) for each in taken}:
        ids = [each.delivery.pk for each in taken if (each.status, each.answer) == said]
        rows = Delivery.objects.filter(pk__in=ids, state=Delivery.State.PENDING)
        rows.update(state=Delivery.State.DELIVERED, ended_at=now, status=said[0], answer=said[1])


def _again(each: Tried, now: datetime, rng: Random) -> None:
    """Try it later, and what follows it in its sequence not before; or give it up, and let the next one go."""
    found = each.delivery
    again = retries.next_try(found.attempts, now=now, give_up_at=found.give_up_at, rng=rng)
    rows = Delivery.objects.filter(pk=found.pk, state=Delivery.State.PENDING)
    if again is None:
        rows.update(state=Delivery.State.GIVEN_UP, ended_at=now, status=each.status, answer=each.answer)
        return
    rows.update(next_try_at=again, status=each.status, answer=each.answer)
    if found.sequence:
        _hold_back(found, again)


def _hold_back(found: Delivery, until: datetime) -> None:
    same = Delivery.objects.filter(
        webhook=found.webhook_id, sequence=found.sequence, state=Delivery.State.PENDING
    )
    same.filter(pk__gt=found.pk, next_try_at__lt=until).update(next_try_at=until)


def _switch_off(webhook: Webhook, last: Tried, *, since: datetime) -> None:
    """Switch off a receiver that took nothing for three days, or that is gone; tell its owner once."""
    why = f"answered {last.status}" if last.status else last.answer
    what = "is gone" if last.status == GONE else "took nothing for three days"
    manage.off(webhook, f"It {what}: {why}")
    log.warning("webhook_switched_off", webhook=webhook.pk)
    key = f"webhook:{webhook.pk}:{since:%Y%m%d%H%M%S}"
    tell(
        webhook.owner_id,
        Notification.Kind.WEBHOOK,
        key=key,
        title="A webhook was switched off",
        body=f"{webhook.url} {what} ({why}). Repair it, then switch the webhook on again.",
        url="/webhooks/",
    )
