"""What is said of a run once its change is committed."""

from django.db import transaction

from delivery import events, news
from delivery.models import Run


def announce_later(run: Run) -> None:
    run_id, owner_id = run.pk, run.owner_id
    transaction.on_commit(lambda: events.run_changed(run_id, owner_id))


def tell_later(run: Run) -> None:
    """The owner is told once this is committed, and the pages too."""
    announce_later(run)
    transaction.on_commit(lambda: news.run_changed(run))
