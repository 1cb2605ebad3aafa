"""A demo operator with three sandbox accounts, their groups and a reminder that is ready to fire."""

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import transaction

from accounts.models import Account, Recipient, Tag, User
from accounts.models.account import Channel
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

    def handle(self, *_: Any, **options: Any) -> None:
        if not settings.DEBUG:
            raise CommandError("The demo has a known password: it is only made with DEBUG=true.")
        if User.objects.filter(username=USERNAME).exists():
            follow_the_sandbox()
        else:
            make_demo()
        if not options["quiet"]:
            self.stdout.write(f"Log in as {USERNAME} with the password {PASSWORD}.")


@transaction.atomic
def make_demo() -> None:
    owner = User.objects.create_superuser(username=USERNAME, password=PASSWORD, first_name="Demo")
    tag = Tag.objects.create(owner=owner, name="Everyone")
    accounts = [_account(owner, name) for name in ACCOUNTS]
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


def follow_the_sandbox() -> None:
    """It may listen on another port than the last time."""
    for account in Account.objects.filter(owner__username=USERNAME, transport="sandbox"):
        if account.credentials.get("base_url") != settings.SANDBOX_URL:
            account.credentials = {**account.credentials, "base_url": settings.SANDBOX_URL}
            account.save(update_fields=["credentials"])


def _account(owner: User, name: str) -> Account:
    slug = name.lower().replace(" ", "-")
    return Account.objects.create(
        owner=owner,
        name=name,
        channel=Channel.WHATSAPP,
        transport="sandbox",
        status=Account.Status.ACTIVE,
        credentials={"base_url": settings.SANDBOX_URL, "account": slug, "token": f"demo-{slug}"},
    )


def _groups(account: Account, tag: Tag) -> None:
    """The groups that the sandbox has for this account."""
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
