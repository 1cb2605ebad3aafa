"""An account of a real sandbox, and the people who may or may not do things to it."""

from uuid import uuid4

import pytest
from redis import Redis

from accounts.models import Account, User
from sandbox.process import SandboxProcess
from tests.factories import AccountFactory


@pytest.fixture
def credentials(gateway: SandboxProcess) -> dict[str, str]:
    return {
        "base_url": gateway.url,
        "account": f"page-{uuid4().hex}",
        "token": "a-token-nobody-sees",
        "idempotent": "yes",
        "pairing": "no",
        "files": "uploaded",
    }


@pytest.fixture
def account(owner: User, credentials: dict[str, str], redis: Redis) -> Account:
    return AccountFactory.create(owner=owner, name="Office phone", credentials=credentials)
