"""Minimal valid objects for tests, with a trait for each state that a test may want.

Everything that hangs together gets one owner: `RunTargetFactory.create()` makes a run, its reminder, a
recipient and an account of the same person. `create` is what the type checker understands.
"""
# mypy: untyped-calls-exclude=factory

import hashlib
from collections.abc import Iterable
from datetime import time, timedelta
from typing import Any, TypeVar

from django.core.files.base import ContentFile
from django.db.models import Model
from django.utils import timezone
from factory.declarations import LazyAttribute, LazyFunction, SelfAttribute, Sequence, SubFactory, Trait
from factory.django import DjangoModelFactory, Password
from factory.helpers import post_generation

from accounts.models import (
    Account,
    AddressAlias,
    Approval,
    ApprovalNumber,
    ConsentChange,
    Contact,
    Delivery,
    GroupSync,
    HealthChange,
    Import,
    ImportRow,
    Limit,
    OwnAddress,
    OwnLimits,
    Recipient,
    RefusedReports,
    ResultFeed,
    Role,
    SenderDomain,
    SendingStop,
    Tag,
    TeamMate,
    TestMessage,
    User,
    Webhook,
)
from accounts.models.account import Action, Channel
from accounts.models.webhook import EventType
from activity.models import AccountDay, Attempt, Inbound, Notification, NotificationOutbox, PushSubscription
from api.models import ApiKey, StoredAnswer
from api.scopes import Scope
from audit.models import Entry, PersonalValues
from delivery.models import MediaHandle, Run, RunAccount, RunTarget, TargetContent
from delivery.states import PauseReason, ReturnKind, RunStatus, TargetStatus
from notices.models import AccountEscalation, Escalation, Follow, Notice, NoticeAddress, Preferences, Way
from queues.models import Item, Queue, QueueAccount, QueueImport, Source, SourceRead, SourceRow
from reminders.models import FollowUp, FollowUpStep, Media, Part, Reminder, ReminderAccount

M = TypeVar("M", bound=Model)

COUNTERS = ("pending", "sending", "sent", "failed", "skipped", "unconfirmed")


class Factory(DjangoModelFactory[M]):
    class Meta:
        abstract = True
        skip_postgeneration_save = True


def now() -> LazyFunction:
    return LazyFunction(timezone.now)


def from_now(**span: float) -> LazyFunction:
    return LazyFunction(lambda: timezone.now() + timedelta(**span))


class UserFactory(Factory[User]):
    """A person who sees only what is theirs: an operator. Log in with `client.force_login`."""

    class Meta:
        model = User

    class Params:
        inactive = Trait(is_active=False)
        staff = Trait(is_staff=True)
        superuser = Trait(is_staff=True, is_superuser=True)
        # Hashing is slow on purpose, so only those who type a password pay for it.
        with_password = Trait(password=Password("a long way to the pace line"))

    username = Sequence(lambda n: f"person-{n}")
    email = LazyAttribute(lambda person: f"{person.username}@example.com")
    password = "!"


class OperatorFactory(UserFactory):
    username = Sequence(lambda n: f"operator-{n}")


class StaffFactory(UserFactory):
    username = Sequence(lambda n: f"staff-{n}")
    is_staff = True


class TeamMateFactory(Factory[TeamMate]):
    class Meta:
        model = TeamMate

    class Params:
        write = Trait(role=Role.WRITE)
        send = Trait(role=Role.SEND)
        manage = Trait(role=Role.MANAGE)

    owner = SubFactory(OperatorFactory)
    mate = SubFactory(OperatorFactory)
    role = Role.READ


class AccountFactory(Factory[Account]):
    """An active account of the sandbox, the transport that every installation has."""

    class Meta:
        model = Account

    class Params:
        unpaired = Trait(status=Account.Status.UNPAIRED)
        pairing = Trait(status=Account.Status.PAIRING)
        paused = Trait(status=Account.Status.PAUSED)
        offline = Trait(status=Account.Status.OFFLINE, status_reason="No answer.")
        flagged = Trait(status=Account.Status.FLAGGED, status_reason="Logged out by the service.")
        archived = Trait(archived_at=now())
        by_email = Trait(channel=Channel.EMAIL, profile="email_business")
        warming_up = Trait(warmup_start=20, warmup_step=30, warmup_ceiling=1000)
        waking = Trait(wake_at=from_now(minutes=5), waiting_for="per_day")

    owner = SubFactory(OperatorFactory)
    name = Sequence(lambda n: f"Account {n}")
    channel = Channel.WHATSAPP
    transport = "sandbox"
    profile = "whatsapp_established"
    as_before = True  # without a daily cap
    own_address = Sequence(lambda n: f"+6019{n:07}")
    credentials = LazyFunction(dict)
    status = Account.Status.ACTIVE


class LimitFactory(Factory[Limit]):
    class Meta:
        model = Limit

    class Params:
        batches = Trait(batch_size=75, batch_pause=30)

    account = SubFactory(AccountFactory)
    action = Action.MESSAGE
    per_minute = 40


class GroupSyncFactory(Factory[GroupSync]):
    """One that is under way."""

    class Meta:
        model = GroupSync

    class Params:
        finished = Trait(finished_at=now(), seen=12, added=12)

    account = SubFactory(AccountFactory)


class ContactFactory(Factory[Contact]):
    """An account that talked with a recipient just now."""

    class Meta:
        model = Contact

    class Params:
        member = Trait(talked_at=None, member_at=now())

    account = SubFactory(AccountFactory)
    recipient = LazyAttribute(lambda contact: RecipientFactory.create(owner=contact.account.owner))
    talked_at = now()


class OwnAddressFactory(Factory[OwnAddress]):
    """One that its person confirmed."""

    class Meta:
        model = OwnAddress

    account = SubFactory(AccountFactory)
    person = SelfAttribute("account.owner")
    address = Sequence(lambda n: f"+6018{n:07}")
    confirmed_at = now()


class TestMessageFactory(Factory[TestMessage]):
    """A test that was asked for."""

    __test__ = False

    class Meta:
        model = TestMessage

    account = SubFactory(AccountFactory)
    person = SelfAttribute("account.owner")
    address = Sequence(lambda n: f"+6018{n:07}")
    kind = TestMessage.Kind.TEST
    asked_at = now()


class AddressAliasFactory(Factory[AddressAlias]):
    class Meta:
        model = AddressAlias

    account = SubFactory(AccountFactory)
    alias = Sequence(lambda n: f"{n + 10**12}@lid")
    address = Sequence(lambda n: f"+6018{n:07}")
    source = AddressAlias.Source.MESSAGE
    learnt_at = now()


class RefusedReportsFactory(Factory[RefusedReports]):
    class Meta:
        model = RefusedReports

    account = SubFactory(AccountFactory)
    count = 3
    first_at = now()
    last_at = now()
    reason = "The report is not signed."


class SenderDomainFactory(Factory[SenderDomain]):
    class Meta:
        model = SenderDomain

    account = SubFactory(AccountFactory, by_email=True)
    domain = "school.example"
    checked_at = now()


class OwnLimitsFactory(Factory[OwnLimits]):
    class Meta:
        model = OwnLimits

    account = SubFactory(AccountFactory)
    read_at = now()
    tried_at = now()


class SendingStopFactory(Factory[SendingStop]):
    class Meta:
        model = SendingStop

    owner = SubFactory(OperatorFactory)
    reason = "the server is moved"

    class Params:
        ended = Trait(ended_at=now())


class ApprovalNumberFactory(Factory[ApprovalNumber]):
    class Meta:
        model = ApprovalNumber

    owner = SubFactory(OperatorFactory)
    above = 2


class ApprovalFactory(Factory[Approval]):
    """A request that waits to lift the owner's number, which nobody asked for."""

    class Meta:
        model = Approval

    class Params:
        approved = Trait(state=Approval.State.APPROVED, decided_at=now())
        refused = Trait(state=Approval.State.REFUSED, decided_at=now(), reason="Not this week.")
        of_reminder = Trait(
            kind=Approval.Kind.REMINDER,
            reminder=LazyAttribute(lambda made: ReminderFactory.create(owner=made.owner)),
        )

    owner = SubFactory(OperatorFactory)
    kind = Approval.Kind.LOOSEN
    title = Sequence(lambda n: f"Request {n}")
    why = "Nobody makes this less strict alone."
    content = "c" * 32
    said = LazyFunction(lambda: {"above": None})


class TagFactory(Factory[Tag]):
    class Meta:
        model = Tag

    owner = SubFactory(OperatorFactory)
    name = Sequence(lambda n: f"Tag {n}")


class RecipientFactory(Factory[Recipient]):
    """A person by phone who may be written to."""

    class Meta:
        model = Recipient

    class Params:
        group = Trait(kind=Recipient.Kind.GROUP, address=Sequence(lambda n: f"120363{n:012}@g.us"))
        mailbox = Trait(
            kind=Recipient.Kind.MAILBOX,
            channel=Channel.EMAIL,
            address=Sequence(lambda n: f"reader-{n}@example.com"),
        )
        opted_out = Trait(opted_out_at=now())
        blocked = Trait(blocked_at=now())
        undeliverable = Trait(
            undeliverable_at=now(),
            undeliverable_for="550 5.1.1 No such user",
            undeliverable_source="a report to News",
        )
        converted = Trait(converted_at=now())
        cooling_down = Trait(attempts=3, not_interested_at=now(), cooldown_until=from_now(hours=48))
        archived = Trait(archived_at=now())

    owner = SubFactory(OperatorFactory)
    channel = Channel.WHATSAPP
    kind = Recipient.Kind.PERSON
    address = Sequence(lambda n: f"+6012{n:07}")
    name = Sequence(lambda n: f"Recipient {n}")

    @post_generation
    def tags(self: Recipient, create: bool, given: Iterable[Tag] | None) -> None:
        if create and given:
            self.tags.set(given)


class ConsentChangeFactory(Factory[ConsentChange]):
    class Meta:
        model = ConsentChange

    class Params:
        opted_in = Trait(move=ConsentChange.Move.IN, how="Asked by mail.")

    recipient = SubFactory(RecipientFactory)
    move = ConsentChange.Move.OUT
    at = now()
    how = "Wrote STOP."


class ImportFactory(Factory[Import]):
    """A checked file of WhatsApp numbers. The file itself is made where a test uploads one."""

    class Meta:
        model = Import

    class Params:
        done = Trait(status=Import.Status.DONE, finished_at=now())

    owner = SubFactory(OperatorFactory)
    filename = Sequence(lambda n: f"people-{n}.csv")
    format = LazyFunction(lambda: {"kind": "csv", "encoding": "utf-8", "delimiter": ","})
    columns = LazyFunction(lambda: [{"title": "Phone", "means": "address", "variable": ""}])
    status = Import.Status.CHECKED
    counts = LazyFunction(lambda: {"rows": 1, "bad": 0, "twins": 0, "known": 0, "new": 1})


class ImportRowFactory(Factory[ImportRow]):
    class Meta:
        model = ImportRow

    job = SubFactory(ImportFactory)
    number = Sequence(lambda n: n + 2)
    written = SelfAttribute("address")
    address = Sequence(lambda n: f"+6013{n:07}")
    kind = "person"


class MediaFactory(Factory[Media]):
    """A file by its hash. The file itself is written only where a test asks for it with `stored`."""

    class Meta:
        model = Media

    class Params:
        content = Sequence(lambda n: f"picture {n}".encode())
        stored = Trait(file=LazyAttribute(lambda media: ContentFile(media.content, "any")))

    owner = SubFactory(OperatorFactory)
    sha256 = LazyAttribute(lambda media: hashlib.sha256(media.content).hexdigest())
    filename = Sequence(lambda n: f"picture-{n}.png")
    content_type = "image/png"
    size = LazyAttribute(lambda media: len(media.content))
    file = LazyAttribute(lambda media: f"{media.sha256[:2]}/{media.sha256}")


class ReminderFactory(Factory[Reminder]):
    """A draft with one text and one account.

    `parts=2` makes two texts. `accounts` and `recipients` take a number to make, or the rows themselves.
    """

    class Meta:
        model = Reminder

    class Params:
        scheduled = Trait(
            status=Reminder.Status.SCHEDULED, fire_at=from_now(hours=1), next_fire_at=from_now(hours=1)
        )
        due = Trait(
            status=Reminder.Status.SCHEDULED, fire_at=from_now(seconds=-1), next_fire_at=from_now(seconds=-1)
        )
        repeating = Trait(schedule=Reminder.Schedule.CRON, cron="0 9 * * 1-5")
        by_hand = Trait(schedule=Reminder.Schedule.BY_HAND)
        off = Trait(status=Reminder.Status.OFF)
        done = Trait(status=Reminder.Status.DONE)
        archived = Trait(archived_at=now())
        business_hours = Trait(window_start_hour=9, window_end_hour=18, send_days=0b0011111)
        around_the_clock = Trait(window_start_hour=0, window_end_hour=24)
        dripping = Trait(drip=True)

    owner = SubFactory(OperatorFactory)
    name = Sequence(lambda n: f"Reminder {n}")

    @post_generation
    def parts(self: Reminder, create: bool, given: int | None) -> None:
        if create:
            for position in range(1 if given is None else given):
                PartFactory.create(reminder=self, position=position)

    @post_generation
    def accounts(self: Reminder, create: bool, given: int | Iterable[Account] | None) -> None:
        if not create:
            return
        if given is None or isinstance(given, int):
            given = AccountFactory.create_batch(
                1 if given is None else given, owner=self.owner, channel=self.channel
            )
        for position, account in enumerate(given):
            ReminderAccountFactory.create(reminder=self, account=account, position=position)

    @post_generation
    def recipients(self: Reminder, create: bool, given: int | Iterable[Recipient] | None) -> None:
        if not create or not given:
            return
        if isinstance(given, int):
            given = RecipientFactory.create_batch(given, owner=self.owner, channel=self.channel)
        self.recipients.set(given)

    @post_generation
    def tags(self: Reminder, create: bool, given: Iterable[Tag] | None) -> None:
        if create and given:
            self.tags.set(given)


class ReminderAccountFactory(Factory[ReminderAccount]):
    class Meta:
        model = ReminderAccount

    reminder = SubFactory(ReminderFactory, accounts=0)
    account = SubFactory(AccountFactory, owner=SelfAttribute("..reminder.owner"))


class PartFactory(Factory[Part]):
    class Meta:
        model = Part

    class Params:
        second = Trait(role=Part.Role.SECOND)
        with_media = Trait(
            kind=Part.Kind.MEDIA,
            text="",
            media=SubFactory(MediaFactory, owner=SelfAttribute("..reminder.owner")),
        )

    reminder = SubFactory(ReminderFactory, parts=0)
    position = 0
    text = "Hello {{ name }}"


class RunFactory(Factory[Run]):
    """A running run without targets. Counters given are added up: `RunFactory.create(sent=3, pending=7)`.

    `targets=5` makes five pending targets, dealt to one account, and counts them.
    """

    class Meta:
        model = Run

    class Params:
        queued = Trait(status=RunStatus.QUEUED, started_at=None, opens_at=from_now(hours=1))
        paused = Trait(status=RunStatus.PAUSED, pause_reason=PauseReason.WINDOW_CLOSED)
        success = Trait(status=RunStatus.SUCCESS, finished_at=now())
        partial = Trait(status=RunStatus.PARTIAL, sent=1, failed=1, finished_at=now())
        lost = Trait(status=RunStatus.FAILED, failed=1, finished_at=now())
        canceled = Trait(status=RunStatus.CANCELED, canceled_at=now(), finished_at=now())
        second = Trait(
            kind=Run.Kind.SECOND, first_target=SubFactory("tests.factories.RunTargetFactory", sent=True)
        )
        missed = Trait(status=RunStatus.SKIPPED, started_at=None, finished_at=now())
        archived = Trait(archived_at=now())

    reminder = SubFactory(ReminderFactory)
    owner = SelfAttribute("reminder.owner")
    fired_at = now()
    started_at = now()
    status = RunStatus.RUNNING

    name = SelfAttribute("reminder.name")
    action = SelfAttribute("reminder.action")
    subject = SelfAttribute("reminder.subject")
    parts = LazyFunction(lambda: [{"kind": "text", "text": "Hello {{ name }}"}])
    zone = SelfAttribute("reminder.zone")
    window_start_hour = SelfAttribute("reminder.window_start_hour")
    window_end_hour = SelfAttribute("reminder.window_end_hour")
    send_days = SelfAttribute("reminder.send_days")
    priority = SelfAttribute("reminder.priority")

    pending = 0
    sending = 0
    sent = 0
    failed = 0
    skipped = 0
    unconfirmed = 0
    total = LazyAttribute(lambda run: sum(getattr(run, name) for name in COUNTERS))

    @post_generation
    def targets(self: Run, create: bool, given: int | None) -> None:
        if not create or not given:
            return
        share = RunAccountFactory.create(run=self)
        RunTargetFactory.create_batch(given, run=self, account=share.account)
        self.pending += given
        self.total += given
        self.save(update_fields=["pending", "total"])


class RunAccountFactory(Factory[RunAccount]):
    class Meta:
        model = RunAccount

    run = SubFactory(RunFactory)
    account = SubFactory(AccountFactory, owner=SelfAttribute("..run.owner"))


class RunTargetFactory(Factory[RunTarget]):
    """A pending target. It leaves the run's counters alone: `RunFactory.create(targets=...)` keeps them."""

    class Meta:
        model = RunTarget

    class Params:
        claimed = Trait(status=TargetStatus.SENDING, attempts=1, fence=1, claimed_at=now())
        begun = Trait(claimed=True, begun_at=now())
        sent = Trait(
            status=TargetStatus.SENT,
            attempts=1,
            parts_done=1,
            settled_at=now(),
            provider_id=Sequence(lambda n: f"provider-{n}"),
        )
        returned = Trait(sent=True, returned_at=now(), return_kind=ReturnKind.TEMPORARY, return_reason="463")
        failed = Trait(status=TargetStatus.FAILED, attempts=1, settled_at=now(), error="No such number.")
        skipped = Trait(status=TargetStatus.SKIPPED, settled_at=now(), error="Opted out.")
        unconfirmed = Trait(
            status=TargetStatus.UNCONFIRMED, attempts=1, settled_at=now(), error="No answer in time."
        )

    run = SubFactory(RunFactory)
    recipient = SubFactory(RecipientFactory, owner=SelfAttribute("..run.owner"))
    account = SubFactory(AccountFactory, owner=SelfAttribute("..run.owner"))
    not_before = now()


class TargetContentFactory(Factory[TargetContent]):
    """The content of an item: a subject and one text."""

    class Meta:
        model = TargetContent

    class Params:
        of_the_run = Trait(subject="", parts=None)

    target = SubFactory(RunTargetFactory, run__kind=Run.Kind.QUEUE)
    subject = Sequence(lambda n: f"Subject {n}")
    parts = LazyFunction(lambda: [{"kind": "text", "text": "Only for you."}])


class QueueFactory(Factory[Queue]):
    """A queue of WhatsApp messages with one account, at any hour. `accounts` takes a number, or the rows themselves."""

    class Meta:
        model = Queue

    class Params:
        by_email = Trait(channel=Channel.EMAIL, action=Action.EMAIL)
        steady = Trait(pace=Queue.Pace.STEADY)
        paused = Trait(paused_at=now())
        archived = Trait(archived_at=now())

    owner = SubFactory(OperatorFactory)
    name = Sequence(lambda n: f"Queue {n}")
    channel = Channel.WHATSAPP
    action = Action.MESSAGE
    window_start_hour = 0
    window_end_hour = 24
    carrier = SubFactory(
        ReminderFactory,
        owner=SelfAttribute("..owner"),
        channel=SelfAttribute("..channel"),
        action=SelfAttribute("..action"),
        name=SelfAttribute("..name"),
        archived=True,
        by_hand=True,
        off=True,
        carries_queue=True,
        accounts=0,
        parts=0,
    )

    @post_generation
    def accounts(self: Queue, create: bool, given: int | Iterable[Account] | None) -> None:
        if not create:
            return
        if given is None or isinstance(given, int):
            given = AccountFactory.create_batch(
                1 if given is None else given, owner=self.owner, channel=self.channel
            )
        for position, account in enumerate(given):
            QueueAccountFactory.create(queue=self, account=account, position=position)


class QueueAccountFactory(Factory[QueueAccount]):
    class Meta:
        model = QueueAccount

    queue = SubFactory(QueueFactory, accounts=0)
    account = SubFactory(AccountFactory, owner=SelfAttribute("..queue.owner"))


class QueueImportFactory(Factory[QueueImport]):
    """A checked file of items. The file itself is made where a test uploads one."""

    class Meta:
        model = QueueImport

    class Params:
        done = Trait(status=QueueImport.Status.DONE, finished_at=now())

    queue = SubFactory(QueueFactory)
    filename = Sequence(lambda n: f"items-{n}.csv")
    columns = LazyFunction(lambda: [{"title": "To", "means": "address", "variable": ""}])
    status = QueueImport.Status.CHECKED
    counts = LazyFunction(lambda: {"rows": 1, "bad": 0, "known": 0, "new": 1, "good": 1})


class ItemFactory(Factory[Item]):
    """An item that waits, with its target and content. It leaves the run's counters alone."""

    class Meta:
        model = Item

    class Params:
        withdrawn = Trait(withdrawn_at=now(), withdrawn_by=Item.WithdrawnBy.PERSON)

    queue = SubFactory(QueueFactory)
    source = "page"
    own_id = Sequence(lambda n: f"item-{n}")
    target = SubFactory(
        RunTargetFactory, run__kind=Run.Kind.QUEUE, run__reminder=SelfAttribute("...queue.carrier")
    )
    recipient = SelfAttribute("target.recipient")
    given = "f" * 64

    @post_generation
    def content(self: Item, create: bool, given: object) -> None:
        if create:
            TargetContentFactory.create(target=self.target)


class SourceFactory(Factory[Source]):
    """A Notion database that is read; nothing answers at its service."""

    class Meta:
        model = Source

    class Params:
        sheet = Trait(
            kind=Source.Kind.SHEET,
            place={"spreadsheet": "1" + "a" * 43, "tab": 0},
            credentials=LazyFunction(lambda: {"account": "{}"}),
        )
        off = Trait(switched_off_at=now())
        stopped = Trait(stopped_at=now(), stopped_why="Notion refuses the token.")

    queue = SubFactory(QueueFactory)
    owner = SelfAttribute("queue.owner")
    kind = Source.Kind.NOTION
    title = Sequence(lambda n: f"Table {n}")
    key = Sequence(lambda n: f"notion:{n}")
    address = "https://www.notion.so/0123456789abcdef0123456789abcdef"
    place = LazyFunction(lambda: {"database": "d", "data_source": "s"})
    credentials = LazyFunction(lambda: {"token": "ntn_secret"})
    mapping = LazyFunction(lambda: {"reads": {"address": "a"}, "tells": {}, "variables": [], "titles": {}})
    next_read_at = from_now(minutes=5)


class SourceReadFactory(Factory[SourceRead]):
    """A read that came to the end of its table."""

    class Meta:
        model = SourceRead

    source = SubFactory(SourceFactory)
    started_at = now()
    ended_at = now()
    outcome = SourceRead.Outcome.DONE
    counts = LazyFunction(lambda: {"rows": 1})


class SourceRowFactory(Factory[SourceRow]):
    class Meta:
        model = SourceRow

    class Params:
        wrong = Trait(problem="There is no text. Write one.")
        without_id = Trait(own_id="", problem="“ID” is empty.")

    source = SubFactory(SourceFactory)
    own_id = Sequence(lambda n: f"row-{n}")
    place = Sequence(str)


class MediaHandleFactory(Factory[MediaHandle]):
    class Meta:
        model = MediaHandle

    run = SubFactory(RunFactory)
    account = SubFactory(AccountFactory, owner=SelfAttribute("..run.owner"))
    sha256 = Sequence(lambda n: hashlib.sha256(str(n).encode()).hexdigest())
    handle = Sequence(lambda n: f"handle-{n}")


class AttemptFactory(Factory[Attempt]):
    """A message that was sent. `test_send=True` is one outside any run."""

    class Meta:
        model = Attempt

    class Params:
        rejected = Trait(outcome=Attempt.Outcome.REJECTED, provider_id="", error="No such number.")
        rate_limited = Trait(outcome=Attempt.Outcome.RATE_LIMITED, provider_id="", error="Slow down.")
        unknown = Trait(outcome=Attempt.Outcome.UNKNOWN, provider_id="", error="No answer in time.")
        test_send = Trait(target=None, run=None, account=SubFactory(AccountFactory))

    target = SubFactory(RunTargetFactory, sent=True)
    run = SelfAttribute("target.run")
    account = SelfAttribute("target.account")
    owner = SelfAttribute("account.owner")
    at = now()
    action = Action.MESSAGE
    outcome = Attempt.Outcome.SENT
    provider_id = Sequence(lambda n: f"provider-{n}")
    took_ms = 120


class AccountDayFactory(Factory[AccountDay]):
    class Meta:
        model = AccountDay

    account = SubFactory(AccountFactory)
    day = LazyFunction(lambda: timezone.now().date())


class HealthChangeFactory(Factory[HealthChange]):
    class Meta:
        model = HealthChange

    account = SubFactory(AccountFactory)
    move = HealthChange.Move.SLOWED
    at = now()
    why = "9 of 60 messages failed."


class InboundFactory(Factory[Inbound]):
    """A reply to an account."""

    class Meta:
        model = Inbound

    class Params:
        receipt = Trait(kind=Inbound.Kind.RECEIPT, text="", state="delivered")
        session = Trait(kind=Inbound.Kind.SESSION, text="", state="working", recipient=None)
        handled = Trait(handled_at=now())

    account = SubFactory(AccountFactory)
    recipient = SubFactory(RecipientFactory, owner=SelfAttribute("..account.owner"))
    event_id = Sequence(lambda n: f"event-{n}")
    kind = Inbound.Kind.MESSAGE
    text = "Thank you!"
    at = now()


class NotificationFactory(Factory[Notification]):
    class Meta:
        model = Notification

    class Params:
        read = Trait(read_at=now())

    owner = SubFactory(OperatorFactory)
    kind = Notification.Kind.PAUSED
    key = Sequence(lambda n: f"run-{n}-paused")
    title = "Reminder paused"
    body = "3 of 10 groups delivered. Tap to resume or cancel."


class PushSubscriptionFactory(Factory[PushSubscription]):
    class Meta:
        model = PushSubscription

    user = SubFactory(OperatorFactory)
    endpoint = Sequence(lambda n: f"https://push.example.com/{n}")
    p256dh = "a-public-key-of-the-browser"
    auth = "a-secret-of-the-browser"


class FollowUpStepFactory(Factory[FollowUpStep]):
    class Meta:
        model = FollowUpStep

    reminder = SubFactory(ReminderFactory)
    position = Sequence(lambda n: n % 1000)
    after_hours = 24
    text = "Did you see this, {{ name }}?"


class FollowUpFactory(Factory[FollowUp]):
    """A queued follow-up to the recipient of a message that was sent."""

    class Meta:
        model = FollowUp

    class Params:
        on_its_way = Trait(status=FollowUp.Status.SENDING, sent_as=SubFactory(RunTargetFactory))
        sent = Trait(status=FollowUp.Status.SENT, ended_at=now())
        removed = Trait(status=FollowUp.Status.REMOVED, removed_reason="opted out", ended_at=now())

    target = SubFactory(RunTargetFactory, sent=True)
    step = SubFactory(FollowUpStepFactory, reminder=SelfAttribute("..target.run.reminder"))
    recipient = SelfAttribute("target.recipient")
    due_at = from_now(hours=24)


class ApiKeyFactory(Factory[ApiKey]):
    """A key whose secret nobody knows; `api.keys.issue` makes one that can be used."""

    class Meta:
        model = ApiKey

    class Params:
        revoked = Trait(revoked_at=now())
        ended = Trait(ends_at=from_now(days=-1))

    person = SubFactory(OperatorFactory)
    name = Sequence(lambda n: f"Program {n}")
    prefix = Sequence(lambda n: f"{n:012x}")
    digest = Sequence(lambda n: hashlib.sha256(f"key {n}".encode()).hexdigest())
    scopes = LazyFunction(lambda: [scope.value for scope in Scope])


class WebhookFactory(Factory[Webhook]):
    """A webhook that wants every event."""

    class Meta:
        model = Webhook

    class Params:
        off = Trait(switched_off_at=now(), switched_off_reason="It took nothing for three days.")

    owner = SubFactory(OperatorFactory)
    url = Sequence(lambda n: f"https://example.com/hooks/{n}")
    events = LazyFunction(lambda: [event.value for event in EventType])
    secrets = LazyFunction(lambda: {"current": f"whsec_{'QUJD' * 8}", "previous": ""})


class DeliveryFactory(Factory[Delivery]):
    """An event that waits to be delivered."""

    class Meta:
        model = Delivery

    class Params:
        delivered = Trait(state=Delivery.State.DELIVERED, ended_at=now(), status=200, attempts=1)
        given_up = Trait(state=Delivery.State.GIVEN_UP, ended_at=now(), status=500, attempts=20)

    webhook = SubFactory(WebhookFactory)
    type = EventType.RUN_FINISHED.value
    sequence = "run:1"
    payload = LazyFunction(lambda: {"type": "run.finished", "data": {}})
    created_at = now()
    give_up_at = from_now(days=3)
    next_try_at = now()


class ResultFeedFactory(Factory[ResultFeed]):
    class Meta:
        model = ResultFeed

    webhook = SubFactory(WebhookFactory)
    run = SubFactory(RunFactory, reminder__owner=SelfAttribute("...webhook.owner"))


class StoredAnswerFactory(Factory[StoredAnswer]):
    class Meta:
        model = StoredAnswer

    key = SubFactory(ApiKeyFactory)
    name = Sequence(lambda n: f"request-{n}")
    fingerprint = Sequence(lambda n: hashlib.sha256(f"request {n}".encode()).hexdigest())
    status = 200
    content_type = "application/json"
    body = LazyFunction(lambda: {"text": "{}"})
    created_at = now()


class EntryFactory(Factory[Entry]):
    """An entry of the audit log: the owner stopped a run on a page."""

    class Meta:
        model = Entry

    owner = SubFactory(OperatorFactory)
    actor = SelfAttribute("owner")
    actor_name = LazyAttribute(lambda entry: entry.actor.username if entry.actor else "")
    door = "page"
    address = "192.0.2.7"
    action = "run.pause"
    thing_type = "run"
    thing_id = Sequence(lambda n: n + 1)
    thing_name = "Rent is due (run 1)"
    before = LazyFunction(lambda: {"status": "running"})
    after = LazyFunction(lambda: {"status": "paused"})


class PersonalValuesFactory(Factory[PersonalValues]):
    class Meta:
        model = PersonalValues

    entry = SubFactory(
        EntryFactory, action="recipient.changed", thing_type="recipient", before=None, after=None
    )
    owner = SelfAttribute("entry.owner")
    recipient_id = SelfAttribute("entry.thing_id")
    before = LazyFunction(lambda: {"name": "Anna"})
    after = LazyFunction(lambda: {"name": "Anna B."})


class NotificationOutboxFactory(Factory[NotificationOutbox]):
    class Meta:
        model = NotificationOutbox

    notification = SubFactory(NotificationFactory)


class PreferencesFactory(Factory[Preferences]):
    class Meta:
        model = Preferences

    class Params:
        quiet = Trait(quiet_from=time(22), quiet_until=time(7))

    person = SubFactory(OperatorFactory)


class FollowFactory(Factory[Follow]):
    class Meta:
        model = Follow

    person = SubFactory(OperatorFactory)
    owner = SubFactory(OperatorFactory)


class NoticeAddressFactory(Factory[NoticeAddress]):
    """A channel of a chat service that wants everything at once."""

    class Meta:
        model = NoticeAddress

    class Params:
        mailbox = Trait(way=Way.EMAIL, address={"url": "ann@example.com"}, shown="a…@example.com")
        unconfirmed = Trait(confirmed_at=None)

    person = SubFactory(OperatorFactory)
    way = Way.SERVICE
    address = LazyFunction(lambda: {"url": "ntfy://ntfy.example.com/secret-topic"})
    shown = "ntfy at ntfy.example.com"
    kinds = LazyFunction(lambda: [kind.value for kind in Notification.Kind])
    confirmed_at = now()


class NoticeFactory(Factory[Notice]):
    """A notice that is due."""

    class Meta:
        model = Notice

    class Params:
        sent = Trait(state=Notice.State.SENT, ended_at=now(), attempts=1)

    address = SubFactory(NoticeAddressFactory)
    kind = Notification.Kind.PAUSED
    subject = Sequence(lambda n: f"run:{n}")
    title = "Reminder paused"
    body = "3 of 10 groups delivered."
    happened_at = now()
    due_at = now()
    give_up_at = from_now(days=1)


class EscalationFactory(Factory[Escalation]):
    class Meta:
        model = Escalation

    run = SubFactory(RunFactory)
    since = now()
    next_at = from_now(minutes=30)


class AccountEscalationFactory(Factory[AccountEscalation]):
    class Meta:
        model = AccountEscalation

    account = SubFactory(AccountFactory)
    since = now()
    next_at = from_now(minutes=30)


# For tests that go over all models.
FACTORY_OF: dict[type[Model], type[Factory[Any]]] = {
    made._meta.model: made for made in Factory.__subclasses__()
}
