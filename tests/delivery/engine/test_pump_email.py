"""An e-mail run through the engine to a real mail server, and one click back."""

import email
import email.policy
import socket
from collections.abc import Iterator
from email.message import EmailMessage
from typing import Any
from urllib.parse import urlsplit

import pytest
from aiosmtpd.controller import Controller
from django.test import Client
from pytest_django import Settings

from accounts.models import Account, Recipient
from delivery.fanout import make_run
from delivery.models import Run
from delivery.parts import FrozenPart
from delivery.states import RunStatus
from delivery.transports.mail.composing import is_sealed
from reminders.fire import continue_conversation
from tests.delivery.stage import Stage, serve
from tests.factories import AccountFactory, LimitFactory, RecipientFactory


class Inbox:
    """Takes everything."""

    def __init__(self) -> None:
        self.mails: list[EmailMessage] = []

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:  # noqa: N802 - aiosmtpd's name
        parsed = email.message_from_bytes(envelope.content, policy=email.policy.default)
        assert isinstance(parsed, EmailMessage)
        self.mails.append(parsed)
        return "250 OK"


@pytest.fixture
def inbox() -> Iterator[tuple[Inbox, int]]:
    taken = Inbox()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = Controller(taken, hostname="127.0.0.1", port=port)
    server.start()
    try:
        yield taken, port
    finally:
        server.stop()


def mailbox(stage: Stage, port: int) -> Account:
    credentials = {
        "host": "127.0.0.1",
        "port": str(port),
        "security": "none",
        "from_address": "news@school.example",
    }
    account = AccountFactory.create(
        owner=stage.owner,
        channel="email",
        transport="email",
        profile="email_newsletter",
        credentials=credentials,
    )
    LimitFactory.create(account=account, action="email", per_minute=60_000)
    return account


def test_a_follow_up_continues_the_conversation_of_its_first_mail(
    stage: Stage, inbox: tuple[Inbox, int]
) -> None:
    taken, port = inbox
    account = mailbox(stage, port)
    readers = [
        RecipientFactory.create(
            owner=stage.owner, channel="email", kind="mailbox", address=f"{name}@example.com", name=name
        )
        for name in ("ada", "grace")
    ]
    first = serve(
        stage.fire(account, to=readers, channel="email", action="email", subject="News", parts=2), account
    )
    sent = {mail["To"]: mail["Message-ID"] for mail in taken.mails}  # the last part of each
    taken.mails.clear()
    firsts = list(first.targets.select_related("run__reminder"))
    step = FrozenPart(kind="text", text="And?")
    firing = continue_conversation(first.reminder, Run.Kind.FOLLOW_UP, [step], firsts)
    serve(make_run(firing), account)
    assert {mail["To"]: mail["In-Reply-To"] for mail in taken.mails} == sent
    assert {mail["Subject"] for mail in taken.mails} == {"Re: News"}
    for mail in taken.mails:
        assert len(mail["References"].split()) == 2
        assert mail["References"].split()[-1] == sent[mail["To"]]


def test_every_reader_gets_a_mail_of_their_own_with_a_link_that_opts_them_out(
    stage: Stage, settings: Settings, inbox: tuple[Inbox, int]
) -> None:
    settings.PUBLIC_URL = "https://paceline.example"
    taken, port = inbox
    account = AccountFactory.create(
        owner=stage.owner,
        channel="email",
        transport="email",
        profile="email_newsletter",
        credentials={
            "host": "127.0.0.1",
            "port": str(port),
            "security": "none",
            "from_address": "news@school.example",
        },
    )
    LimitFactory.create(account=account, action="email", per_minute=60_000)
    readers = [
        RecipientFactory.create(
            owner=stage.owner, channel="email", kind="mailbox", address=f"{name}@example.com", name=name
        )
        for name in ("ada", "grace")
    ]
    run = serve(
        stage.fire(account, to=readers, channel="email", action="email", subject="News for {{ name }}"),
        account,
    )
    assert run.status == RunStatus.SUCCESS
    assert {mail["To"]: mail["Subject"] for mail in taken.mails} == {
        "ada@example.com": "News for ada",
        "grace@example.com": "News for grace",
    }
    assert len({mail["Message-ID"] for mail in taken.mails}) == 2

    mail = next(each for each in taken.mails if each["To"] == "ada@example.com")
    assert mail["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    link = urlsplit(mail["List-Unsubscribe"].strip("<>"))
    assert link.netloc == "paceline.example"
    assert is_sealed(mail["Message-ID"], "school.example")
    Recipient.objects.filter(address="ada@example.com").update(address="ada@work.example")
    assert Client().post(link.path, {"List-Unsubscribe": "One-Click"}).status_code == 200
    assert Recipient.objects.get(address="ada@example.com").opted_out_at is not None
    assert Recipient.objects.get(address="ada@work.example").opted_out_at is not None
    assert Recipient.objects.get(address="grace@example.com").opted_out_at is None
