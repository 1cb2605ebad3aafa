"""Makes a demo operator with three sandbox accounts, their groups and a reminder that is ready to fire."""

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import transaction

from accounts.models import Account, Recipient, Tag, User
from accounts.models.account import Channel
from delivery.management.output import say, takes_json
from reminders.models import Part, Reminder, ReminderAccount
from sandbox.groups import group

USERNAME = "demo"
PASSWORD = "paceline-demo"  # noqa: S105 - printed on the screen, and only made in debug
ACCOUNTS = ("Office phone", "Sports phone", "Parents phone")
GROUPS = 30
TEXT = (
    "Hello {{ name }}! A friendly reminder: the school fair is on Saturday at 10:00 in the main hall. "
    "See you there!"
)


class Command(BaseCommand):
    help = "Make the demo operator, unless it exists, and print its login."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--quiet", action="store_true", help="Do not print the login.")
        parser.add_argument(
            "--sandbox",
            metavar="URL",
            help="Where the sandbox is now; accounts that led to it follow it there.",
        )
        takes_json(parser)

    def handle(self, *_: Any, **options: Any) -> None:
        if not settings.DEBUG:
            raise CommandError("The demo has a known password: it is only made with DEBUG=true.")
        if not User.objects.filter(username=USERNAME).exists():
            make_demo(options["sandbox"] or settings.SANDBOX_URL)
        elif options["sandbox"]:
            follow_the_sandbox(options["sandbox"])
        if not options["quiet"]:
            login = {"username": USERNAME, "password": PASSWORD}
            say(self, options, f"Log in as {USERNAME} with the password {PASSWORD}.", login)


@transaction.atomic
def make_demo(sandbox: str) -> None:
    owner = User.objects.create_superuser(username=USERNAME, password=PASSWORD, first_name="Demo")
    tag = Tag.objects.create(owner=owner, name="Everyone")
    accounts = [_account(owner, name, sandbox) for name in ACCOUNTS]
    for account in accounts:
        _groups(account, tag)
    reminder = Reminder.objects.create(
        owner=owner,
        name="School fair",
        schedule=Reminder.Schedule.BY_HAND,
        status=Reminder.Status.SCHEDULED,
        window_start_hour=0,
        window_end_hour=24,
    )
    Part.objects.create(reminder=reminder, text=TEXT)
    reminder.tags.add(tag)
    for position, account in enumerate(accounts):
        ReminderAccount.objects.create(reminder=reminder, account=account, position=position)


@transaction.atomic
def follow_the_sandbox(url: str) -> None:
    """Set all accounts of this checkout's sandbox to its current address: its port may have changed.

    The accounts of the demo hold its last address. Accounts with any other address stay as they are.
    """
    accounts = list(Account.objects.filter(transport="sandbox"))
    last = {_address(account) for account in accounts if _made_by_demo(account)}
    for account in accounts:
        if _address(account) in last - {url}:
            account.credentials = {**account.credentials, "base_url": url}
            account.save(update_fields=["credentials"])


def _address(account: Account) -> str:
    return str(account.credentials.get("base_url", ""))


def _made_by_demo(account: Account) -> bool:
    return account.credentials.get("token") == _token(account.credentials.get("account", ""))


def _token(slug: str) -> str:
    return f"demo-{slug}"


def _account(owner: User, name: str, sandbox: str) -> Account:
    slug = name.lower().replace(" ", "-")
    return Account.objects.create(
        owner=owner,
        name=name,
        channel=Channel.WHATSAPP,
        transport="sandbox",
        status=Account.Status.ACTIVE,
        profile="whatsapp_established",
        credentials={"base_url": sandbox, "account": slug, "token": _token(slug)},
    )


def _groups(account: Account, tag: Tag) -> None:
    """Add the groups that the sandbox has for this account."""
    slug = account.credentials["account"]
    found = [
        Recipient(
            owner=account.owner,
            channel=Channel.WHATSAPP,
            kind=Recipient.Kind.GROUP,
            address=each.id,
            name=each.name,
            account=account,
        )
        for each in (group(slug, number) for number in range(GROUPS))
    ]
    tag.recipients.add(*Recipient.objects.bulk_create(found))
