"""Services and a mail server that the tests of notices send to."""

from collections.abc import Iterator

import pytest
from pytest_django import Settings

from accounts.models import User
from notices.models import NoticeAddress
from tests.factories import NoticeAddressFactory
from tests.notices.services import Mailbox, Services, mailbox, services


@pytest.fixture
def chat() -> Iterator[Services]:
    with services() as found:
        yield found


@pytest.fixture
def mails(settings: Settings) -> Iterator[Mailbox]:
    """The mail server of the installation."""
    with mailbox() as found:
        settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
        settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", found.port
        settings.EMAIL_USE_TLS = settings.EMAIL_USE_SSL = False
        settings.EMAIL_HOST_USER = settings.EMAIL_HOST_PASSWORD = ""
        settings.DEFAULT_FROM_EMAIL = "paceline@example.com"
        yield found


@pytest.fixture
def channel(owner: User, chat: Services) -> NoticeAddress:
    """A channel of the owner that wants everything at once."""
    return NoticeAddressFactory.create(
        person=owner, address={"url": f"json://{chat.place}/hook"}, shown="JSON at 127.0.0.1"
    )
