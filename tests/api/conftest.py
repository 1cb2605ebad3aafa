"""Programs of the people of every permission test."""

import pytest
from redis import Redis

from accounts.models import User
from tests.api.program import Program


@pytest.fixture(autouse=True)
def _empty_redis(redis: Redis) -> None:
    """Limits are counted there."""


@pytest.fixture
def program(owner: User) -> Program:
    """A program of the owner, which may do everything."""
    return Program(owner)
