"""A browser of the owner."""

import pytest
from django.test import Client

from accounts.models import User


@pytest.fixture
def logged_in(client: Client, owner: User) -> Client:
    client.force_login(owner)
    return client
