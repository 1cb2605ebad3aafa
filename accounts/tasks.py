"""Celery tasks of accounts. Each takes ids and makes one call."""

from accounts.imports import stages
from config.celery import app


@app.task(name=stages.TASK)
def work_on_import(job_id: int) -> None:
    stages.work_in_turn(job_id)


@app.task(name="accounts.rescue_imports", expires=10)
def rescue_imports() -> None:
    stages.rescue()
