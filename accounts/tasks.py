"""Thin tasks: ids in, one call."""

from accounts.imports import stages
from config.celery import app


@app.task(name=stages.TASK)
def work_on_import(job_id: int) -> None:
    stages.work(job_id)
