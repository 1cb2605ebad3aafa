"""What one would write without Paceline: a Celery task per target, with its connections reused."""

import http.client
import json
import os
from datetime import UTC, datetime

import psycopg
from celery import Celery

app = Celery("per_target", broker=os.environ["BROKER_URL"])
app.conf.update(task_ignore_result=True, worker_prefetch_multiplier=4, task_default_queue="per-target")

HEADERS = {"Authorization": "Bearer bench", "Content-Type": "application/json"}


class Connections:
    """One of each per worker process."""

    def __init__(self) -> None:
        self.database = psycopg.connect(os.environ["PLAIN_DATABASE"], autocommit=True)
        self.http = http.client.HTTPConnection(os.environ["SINK"], timeout=30)


connections: list[Connections] = []


@app.task(name="send_target")
def send_target(target_id: int) -> None:
    """Read the row, send, record."""
    if not connections:
        connections.append(Connections())
    database, gateway = connections[0].database, connections[0].http
    row = database.execute(
        "SELECT account, address, body FROM per_target WHERE id = %s", [target_id]
    ).fetchone()
    assert row is not None
    body = json.dumps({"to": row[1], "text": row[2]})
    gateway.request("POST", f"/api/{row[0]}/messages", body=body, headers=HEADERS)
    answer = gateway.getresponse()
    answer.read()
    assert answer.status == http.client.CREATED
    database.execute(
        "UPDATE per_target SET status = 'sent', sent_at = %s WHERE id = %s", [datetime.now(UTC), target_id]
    )
