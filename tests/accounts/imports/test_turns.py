"""Imports of one owner take a few places of a worker, and what waits is taken up when one ends."""

from collections.abc import Iterator

import pytest
from redis import Redis

from accounts.imports import stages
from accounts.models import Import, User
from config.long_tasks import long_tasks
from tests.factories import ImportFactory

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("redis")]


@pytest.fixture(autouse=True)
def places(redis: Redis, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Collect the messages to workers, in place of a broker."""
    long_tasks.cache_clear()
    sent: list[int] = []
    monkeypatch.setattr(stages, "_send", lambda job_id, **_: sent.append(job_id))
    monkeypatch.setattr(stages, "_work", finish)
    yield sent
    long_tasks.cache_clear()


def finish(job: Import) -> None:
    job.status = Import.Status.CHECKED
    job.save()


def waiting(owner: User) -> Import:
    return ImportFactory.create(owner=owner, status=Import.Status.CHECKING)


def test_one_owner_never_takes_all_places(owner: User, stranger: User) -> None:
    mine, other = waiting(owner), waiting(stranger)
    for _ in range(long_tasks().each):
        assert long_tasks().take(owner.pk) is None
    stages.work_in_turn(mine.pk)
    stages.work_in_turn(other.pk)
    mine.refresh_from_db()
    other.refresh_from_db()
    assert (mine.status, other.status) == (Import.Status.CHECKING, Import.Status.CHECKED)


def test_the_next_is_sent_for_when_one_ends(owner: User, stranger: User, places: list[int]) -> None:
    first, second, third, other = waiting(owner), waiting(owner), waiting(owner), waiting(stranger)
    stages.work_in_turn(first.pk)
    assert set(places) == {second.pk, other.pk}
    assert third.pk not in places
    assert long_tasks().taken(owner.pk) == 0
