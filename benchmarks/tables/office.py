"""Fills the tables around sending: queues and sources, the audit log, webhooks, notices, replies, imports.

Called after `crowd.fill`, whose operator owns most of the rows. The long tables are made in office.sql.
"""

from dataclasses import dataclass
from pathlib import Path

from django.db import connection
from django.utils import timezone

from accounts.models import Account, Import, User, Webhook
from api.models import ApiKey
from benchmarks.tables import crowd
from delivery.models import Run, RunAccount
from delivery.states import RunStatus
from notices.models import NoticeAddress
from people.models import Invitation
from queues import steering
from queues.models import Queue, QueueImport, Source

SQL = Path(__file__).with_suffix(".sql")
SETTINGS = {
    "name": "Letters",
    "pace": "planned",
    "zone": "UTC",
    "window_start_hour": 6,
    "window_end_hour": 18,
    "subject": "",
    "text": "",
    "send_days": 127,
    "priority": 0,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Office:
    """The ids of the rows that own the long tables."""

    queue: int
    run: int
    source: int
    webhook: int
    address: int
    job: int


def fill(size: crowd.Size) -> Office:
    """Fill the tables, which must be empty, and analyze them for the planner."""
    operator = User.objects.get(pk=crowd.OPERATOR)
    queue = steering.create(operator, accounts=[Account.objects.get(pk=1)], by=operator, settings=SETTINGS)
    source, webhook, address = _source(queue), _webhook(operator), _address(operator)
    job = Import.objects.create(
        owner=operator, filename="people.csv", status="done", columns=[], counts={"added": 7}
    )
    _small(queue, operator)
    made = Office(
        queue=queue.pk,
        run=_run(queue).pk,
        source=source.pk,
        webhook=webhook.pk,
        address=address.pk,
        job=job.pk,
    )
    _long_tables(size, made, source.key)
    return made


def _source(queue: Queue) -> Source:
    return Source.objects.create(
        owner=queue.owner,
        queue=queue,
        kind="notion",
        title="Letters",
        key="notion-1",
        address="https://notion.example/letters",
        place={"database": "letters", "data_source": "letters"},
        credentials={"token": "bench"},
    )


def _webhook(operator: User) -> Webhook:
    return Webhook.objects.create(
        owner=operator, url="https://example.com/hook", events=["run.finished"], secrets={}, made_by=operator
    )


def _address(operator: User) -> NoticeAddress:
    return NoticeAddress.objects.create(
        person=operator,
        way="email",
        address={},
        kinds=[],
        shown="me@example.com",
        confirmed_at=timezone.now(),
    )


def _small(queue: Queue, operator: User) -> None:
    """Make one row of each short list, so that its page is asked for."""
    QueueImport.objects.create(queue=queue, filename="letters.csv", status="done")
    ApiKey.objects.create(person=operator, name="Script", prefix="pace-1", digest="0" * 64, scopes=["read"])
    Invitation.objects.create(
        owner=operator, made_by=operator, email="new@example.com", digest="1", ends_at=timezone.now()
    )


def _run(queue: Queue) -> Run:
    run = Run.objects.create(
        reminder_id=queue.carrier_id,
        owner_id=queue.owner_id,
        kind=Run.Kind.QUEUE,
        fired_at=timezone.now(),
        name=queue.name,
        action=queue.action,
        parts=[{"kind": "text", "text": "Each item has a text of its own."}],
        zone=queue.zone,
        window_start_hour=queue.window_start_hour,
        window_end_hour=queue.window_end_hour,
        send_days=queue.send_days,
        status=RunStatus.RUNNING,
        on_time_first=True,
    )
    RunAccount.objects.create(run=run, account_id=1)
    return run


def _long_tables(size: crowd.Size, made: Office, key: str) -> None:
    values: dict[str, int | str] = {
        "items": size.targets // 10,
        "owners": size.owners,
        "accounts": size.accounts,
        "recipients": size.others,
        "audience": size.biggest_run,
        "operator": crowd.OPERATOR,
        "queue": made.queue,
        "run": made.run,
        "source": made.source,
        "key": key,
        "webhook": made.webhook,
        "address": made.address,
        "job": made.job,
    }
    with connection.cursor() as cursor:
        cursor.execute(SQL.read_text(), values)
        cursor.execute("ANALYZE")
