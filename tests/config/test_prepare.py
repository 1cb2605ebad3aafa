"""The start of `make run`: one process for the migrations and the demo, which does nothing that is done already."""

import os
import subprocess
import sys

import pytest
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from django_celery_beat.models import PeriodicTask
from pytest_django import Settings

from config import prepare
from tests.config.programs import PROJECT


@pytest.mark.django_db
def test_migrations_run_only_while_one_is_pending(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []
    monkeypatch.setattr(prepare, "call_command", lambda name, **_: ran.append(name))
    prepare.prepare()
    assert ran == []
    [newest] = MigrationLoader(connection).graph.leaf_nodes("delivery")
    MigrationRecorder(connection).record_unapplied(*newest)
    prepare.prepare()
    assert ran == ["migrate"]


@pytest.mark.django_db
def test_jobs_are_planned_again_as_the_settings_say(settings: Settings) -> None:
    settings.TICK_SECONDS = 7
    prepare.prepare()
    assert PeriodicTask.objects.get(task="delivery.tick").interval.every == 7


LOADED = """
import sys
sys.argv = ["celery", "-A", "config", "beat"]
from config.celery import app
app.loader.import_default_modules()
print(*sys.modules)
"""


def test_beat_loads_neither_the_web_server_nor_pages_nor_tasks() -> None:
    found = subprocess.run(
        [sys.executable, "-c", LOADED],
        cwd=PROJECT,
        env={**os.environ, "DEBUG": "true"},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    loaded = found.stdout.split()
    assert "delivery.engine.beat_clock" in loaded
    assert {"daphne", "config.urls", "accounts.admin", "delivery.tasks", "reminders.tasks"}.isdisjoint(loaded)
