"""The recipients of a reminder: chosen one by one, by a search, or by tag.

Each function runs one statement, however many recipients there are.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from django.db import connection, transaction
from django.db.models import Case, CharField, Exists, F, OuterRef, Q, QuerySet, Value, When

from accounts.models import Account, Recipient, Tag, User
from accounts.models.recipient import RecipientQuerySet
from accounts.paging import at_most_shown
from accounts.recipients import tags
from accounts.recipients.search import matching
from audit.record import record
from reminders import headcount
from reminders.drafts import ACTIONS, NotPossibleError, locked_to_edit
from reminders.message import quiet_for
from reminders.models import Reminder, ReminderAccount

Chosen = Reminder.recipients.through
Tagged = Recipient.tags.through


def everyone(reminder: Reminder) -> RecipientQuerySet:
    """Return all of the owner's recipients on the reminder's channel, each with whether it is `chosen`."""
    rows = Recipient.objects.filter(owner=reminder.owner_id, channel=reminder.channel, archived_at=None)
    return rows.annotate(chosen=_is_named(reminder))


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Which recipients a list shows: by words, account, kind, and the tags that they have and do not have."""

    search: str = ""
    account: int | None = None  # only this account reaches them
    kind: str = ""
    tags: Sequence[int] = ()  # they have all of these
    without: Sequence[int] = ()  # and none of these
    chosen: bool = False


def found(reminder: Reminder, wanted: Wanted) -> RecipientQuerySet:
    """Return the recipients that match everything that is wanted."""
    rows = everyone(reminder)
    if wanted.chosen:
        rows = rows.filter(_is_named(reminder))
    if wanted.account is not None:
        rows = rows.filter(account=wanted.account)
    if wanted.kind:
        rows = rows.filter(kind=wanted.kind)
    for tag in wanted.tags:
        rows = rows.filter(_has(tag))
    for tag in wanted.without:
        rows = rows.filter(~_has(tag))
    return cast("RecipientQuerySet", matching(rows, wanted.search))


def _has(tag: int) -> Exists:
    return Exists(Tagged.objects.filter(tag_id=tag, recipient=OuterRef("pk")))


def some_of(reminder: Reminder, most: int) -> list[Recipient]:
    """Return a few of the chosen recipients who may get it, without reading the rest."""
    ids = _named(reminder).order_by("recipient_id")[: most * 2].union(_tagged(reminder)[: most * 2])
    return list(Recipient.objects.filter(pk__in=ids).reachable().order_by("id")[:most])


def some_people(reminder: Reminder, most: int, *, kinds: Sequence[str]) -> list[Recipient]:
    """Return some of the chosen recipients of these kinds who may get it, without reading all of a long list."""
    ids = _named(reminder)[: most * 10].union(_tagged(reminder)[: most * 10])
    return list(Recipient.objects.filter(pk__in=ids, kind__in=kinds).reachable().order_by("id")[:most])


def excluded(reminder: Reminder, accounts: Sequence[int]) -> RecipientQuerySet:
    """Return the chosen recipients who will get nothing, each with the reason in `refused`."""
    elsewhere = Q(account__isnull=False) & ~Q(account__in=accounts)
    out = Q(opted_out_at__isnull=False) | Q(blocked_at__isnull=False) | Q(archived_at__isnull=False)
    out |= Q(undeliverable_at__isnull=False) | ~Q(problem="")
    chosen = Recipient.objects.filter(pk__in=_named(reminder).union(_tagged(reminder)))
    rows = chosen.filter(out | elsewhere | ~Q(channel=reminder.channel))
    # In the order of `delivery.audience.REFUSED`.
    return rows.annotate(
        refused=Case(
            When(opted_out_at__isnull=False, then=Value("opted out")),
            When(blocked_at__isnull=False, then=Value("blocked")),
            When(undeliverable_at__isnull=False, then=Value("undeliverable")),
            When(archived_at__isnull=False, then=Value("no longer reachable")),
            When(~Q(problem=""), then=F("problem")),
            When(~Q(channel=reminder.channel), then=Value("on another channel")),
            default=Value("reached only by another account"),
            output_field=CharField(),
        )
    )


def scheduled_names_one_of(owner_id: int, tags: Iterable[str]) -> bool:
    """Return whether a scheduled reminder of the owner names one of the tags: then a tag decides who gets a message."""
    found = Reminder.objects.filter(owner=owner_id, status=Reminder.Status.SCHEDULED, archived_at=None)
    return found.filter(tags__owner=owner_id, tags__name__in=set(tags)).exists()


@transaction.atomic
def choose(reminder: Reminder, rows: RecipientQuerySet, *, by: User) -> int:
    """Add all of `rows`; return how many were not chosen before."""
    reminder = _locked(reminder, by)
    rows = rows.filter(owner=reminder.owner_id)
    picked, values = rows.order_by().values_list("pk").query.sql_with_params()
    with connection.cursor() as cursor:
        cursor.execute(
            f"""
            INSERT INTO reminders_reminder_recipients (reminder_id, recipient_id)
            SELECT %s, picked.id FROM ({picked}) picked (id) ON CONFLICT DO NOTHING
            """,  # noqa: S608 - `picked` is Django's own SQL
            [reminder.pk, *values],
        )
        added = int(cursor.rowcount)
    _record(reminder, by, {"recipients_added": added} if added else {})
    return added


@transaction.atomic
def unchoose(reminder: Reminder, rows: RecipientQuerySet, *, by: User) -> int:
    """Remove all of `rows`; return how many were chosen before. Recipients with a tag of the reminder still get it."""
    reminder = _locked(reminder, by)
    gone, _ = Chosen.objects.filter(reminder=reminder, recipient__in=rows.order_by().values("pk")).delete()
    _keep_complete(reminder)
    _record(reminder, by, {"recipients_removed": gone} if gone else {})
    return gone


@transaction.atomic
def choose_tags(reminder: Reminder, tags: Iterable[str], *, by: User) -> None:
    """Choose tags: everyone who has one of them when the reminder fires gets it."""
    reminder = _locked(reminder, by)
    wanted = [int(pk) for pk in tags if pk.isascii() and pk.isdigit() and len(pk) < 19]
    before = sorted(reminder.tags.values_list("name", flat=True))
    reminder.tags.set(Tag.objects.filter(owner=reminder.owner_id, pk__in=wanted))
    after = sorted(reminder.tags.values_list("name", flat=True))
    _record(reminder, by, {"tags": after} if before != after else {}, {"tags": before})
    _keep_complete(reminder)


@transaction.atomic
def choose_accounts(
    reminder: Reminder, accounts: Sequence[Account], *, action: str = "", by: User
) -> Reminder:
    """Send from these accounts in turn. They decide the channel, so all of them must be on one."""
    reminder = _locked(reminder, by)
    channels = {account.channel for account in accounts}
    if len(channels) > 1:
        names = " and ".join(sorted(account.get_channel_display() for account in accounts))
        raise NotPossibleError(f"A reminder goes out on one channel, not on {names}. Choose accounts of one.")
    if not accounts and reminder.status != Reminder.Status.DRAFT:
        raise NotPossibleError(
            "A reminder that is not a draft any more needs an account. Choose at least one."
        )
    if any(account.owner_id != reminder.owner_id for account in accounts):
        raise NotPossibleError("These accounts belong to somebody else. Choose others.")
    for channel in channels:
        reminder.channel = channel
    possible = ACTIONS[reminder.channel]
    reminder.action = action if action in possible else reminder.action
    reminder.action = reminder.action if reminder.action in possible else possible[0]
    reminder.save(update_fields=["channel", "action", "updated_at"])
    earlier = ReminderAccount.objects.filter(reminder=reminder).order_by("position", "id")
    before = list(earlier.values_list("account_id", flat=True))
    after = [account.pk for account in accounts]
    _record(reminder, by, {"accounts": after} if before != after else {}, {"accounts": before})
    earlier.delete()
    ReminderAccount.objects.bulk_create(
        [
            ReminderAccount(reminder=reminder, account=account, position=position)
            for position, account in enumerate(accounts)
        ]
    )
    return reminder


def _record(
    reminder: Reminder, by: User, after: Mapping[str, Any], before: Mapping[str, Any] | None = None
) -> None:
    if after:
        quiet = quiet_for(reminder)
        record("reminder.changed", reminder, by=by, before=before, after=after, quiet=quiet)


def tags_of(reminder: Reminder) -> list[Tag]:
    """Return the owner's tags, each with how many recipients have it and whether it is `chosen`."""
    chosen = Reminder.tags.through.objects.filter(reminder=reminder, tag=OuterRef("pk"))
    rows = Tag.objects.filter(owner=reminder.owner_id).annotate(chosen=Exists(chosen))
    found = list(tags.with_sizes(rows).order_by("name"))
    tags.show_sizes(found)
    return found


def named(reminder: Reminder) -> int:
    """Return how many recipients are chosen one by one."""
    return _named(reminder).count()


def named_shown(reminder: Reminder) -> int:
    """Return the same, counted as far as a page shows it."""
    return at_most_shown(_named(reminder))


def _is_named(reminder: Reminder) -> Exists:
    return Exists(Chosen.objects.filter(reminder=reminder, recipient=OuterRef("pk")))


def _named(reminder: Reminder) -> "QuerySet[Any, int]":
    return Chosen.objects.filter(reminder=reminder).values_list("recipient_id", flat=True)


def _tagged(reminder: Reminder) -> "QuerySet[Any, int]":
    wanted = Reminder.tags.through.objects.filter(reminder=reminder).values("tag_id")
    return Tagged.objects.filter(tag_id__in=wanted).values_list("recipient_id", flat=True)


def _keep_complete(reminder: Reminder) -> None:
    """Raise NotReadyError when a scheduled reminder is no longer complete, since it may fire at any moment."""
    if reminder.status != Reminder.Status.DRAFT and not (
        _named(reminder).exists() or _tagged(reminder).exists()
    ):
        raise NotPossibleError(
            "A reminder that is not a draft any more needs recipients. Leave at least one."
        )


def _locked(reminder: Reminder, by: User) -> Reminder:
    transaction.on_commit(lambda: headcount.forget(reminder))
    return locked_to_edit(reminder, by=by)
