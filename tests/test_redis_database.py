from pathlib import Path

import pytest
from django.conf import settings
from redis import Redis

from tests.redis_database import DATABASES, free_database, with_database


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("redis://localhost:6379/0", "redis://localhost:6379/7"),
        ("redis://:secret@localhost?db=0", "redis://:secret@localhost/7"),
        ("unix:///run/redis.sock", "unix:///run/redis.sock?db=7"),
        ("unix:///run/redis.sock?db=0&protocol=3", "unix:///run/redis.sock?protocol=3&db=7"),
    ],
)
def test_an_address_is_pointed_at_another_database(url: str, expected: str) -> None:
    assert with_database(url, 7) == expected


def test_a_database_that_is_taken_is_not_given_again_until_it_is_free(tmp_path: Path) -> None:
    with free_database(tmp_path) as first:
        with free_database(tmp_path) as second:
            assert {first, second} == {1, 2}
        with free_database(tmp_path) as again:
            assert again == second


def test_when_all_are_taken_a_sentence_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.redis_database.DATABASES", range(1, 2))
    with (
        free_database(tmp_path),
        pytest.raises(RuntimeError, match="run fewer tests at once"),
        free_database(tmp_path),
    ):
        pass


def test_tests_use_a_database_that_is_not_the_program_s(redis: Redis, redis_url: str) -> None:
    redis.set("here", "only")
    assert redis_url == settings.REDIS_URL
    assert redis.connection_pool.connection_kwargs["db"] in DATABASES
    assert redis.dbsize() == 1
