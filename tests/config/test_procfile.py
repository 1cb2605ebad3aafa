"""The lines of the Procfile as `make run` runs them."""

import pytest

from config.procfile import leveled

WORKER = "celery -A config worker --loglevel=info --without-gossip"


def test_celery_logs_at_the_level_that_everything_else_logs_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOG_LEVEL", "WARNING")
    assert leveled(WORKER) == "celery -A config worker --loglevel=warning --without-gossip"
    assert leveled("python -m sandbox") == "python -m sandbox"


def test_without_a_level_a_line_stays_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LOG_LEVEL", raising=False)
    assert leveled(WORKER) == WORKER
