"""Thin tasks: ids in, one call."""

from accounts.imports import stages
from config.celery import app


@app.task(name=stages.TASK)
def work_on_import(job_id: int) -> None:
    stages.work(job_id)


@app.task(name="accounts.rescue_imports", expires=10)
def rescue_imports() -> None:
    stages.rescue()
