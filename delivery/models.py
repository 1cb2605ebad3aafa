"""Models of runs and their targets. docs/decisions/0003-indexes.md says which query each index serves."""

import uuid

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.db import models
from django.db.models import Exists, F, OuterRef, Q
from django.db.models.functions import Now

from accounts.models import Account, Recipient
from delivery.states import (
    GO_ON_WITH_THEIR_ACCOUNT,
    OPEN_RUN,
    SETTLED_RUN,
    PauseReason,
    ReturnKind,
    RunStatus,
    TargetStatus,
)


def choices(enum: type[RunStatus | TargetStatus | PauseReason | ReturnKind]) -> list[tuple[str, str]]:
    return [(member.value, member.value.replace("_", " ").capitalize()) for member in enum]


def target_key(run_key: uuid.UUID, target_id: int) -> str:
    return f"{run_key.hex}-{target_id}"


def shown_as(status: str) -> Q:
    """Return the condition for runs that people read as having this status, as `Run.shown_status` says it."""
    if status == RunStatus.CANCELED:
        begun = Q(status=RunStatus.PARTIAL, canceled_at__isnull=False)
        return Q(status=RunStatus.CANCELED) | begun
    if status == RunStatus.PARTIAL:
        return Q(status=status, canceled_at=None)
    return Q(status=status)


class RunQuerySet(models.QuerySet["Run"]):
    def open(self) -> "RunQuerySet":
        return self.filter(status__in=OPEN_RUN)

    def settled(self) -> "RunQuerySet":
        return self.filter(status__in=SETTLED_RUN)

    def resumable(self) -> "RunQuerySet":
        return self.filter(status=RunStatus.PAUSED, canceled_at__isnull=True)

    def waiting_for_a_person(self) -> "RunQuerySet":
        """Return the paused runs that do not continue by themselves."""
        return self.resumable().filter(opens_at=None).exclude(pause_reason__in=GO_ON_WITH_THEIR_ACCOUNT)

    def canceling(self) -> "RunQuerySet":
        """Return the canceled runs whose last targets have no result yet."""
        return self.filter(status=RunStatus.PAUSED, canceled_at__isnull=False)

    def in_the_way(self) -> "RunQuerySet":
        """Return the open runs that may still send. A canceled one does not, once nothing of it is under way."""
        return self.open().exclude(canceled_at__isnull=False, sending=0)

    def going(self) -> "RunQuerySet":
        """Return the runs that continue by themselves. A paused run waits for a person, for an unknown time."""
        by_itself = Q(status=RunStatus.PAUSED, opens_at__isnull=False)
        return self.filter(Q(status__in=[RunStatus.QUEUED, RunStatus.RUNNING]) | by_itself)

    def closing(self, now: object) -> "RunQuerySet":
        """Return the running runs whose window has closed."""
        return self.filter(status=RunStatus.RUNNING, closes_at__lte=now)

    def opening(self, now: object) -> "RunQuerySet":
        """Return the runs that wait for a window which is open now."""
        return self.filter(status__in=[RunStatus.QUEUED, RunStatus.PAUSED], opens_at__lte=now)

    def left_to_stopped_accounts(self) -> "RunQuerySet":
        """Return the running runs that go on without some accounts, and of which only the shares of these are left."""
        shares = RunAccount.objects.filter(run=OuterRef("pk"), open=True)
        theirs = RunTarget.objects.filter(
            run=OuterRef("run"), account=OuterRef("account"), status=TargetStatus.PENDING
        )
        others = shares.filter(Exists(theirs), waits=False)
        without_some = RunAccount.objects.filter(open=True, waits=True).values("run")
        return self.filter(
            ~Exists(others), pk__in=without_some, status=RunStatus.RUNNING, sending=0, pending__gt=0
        )

    def behind(self) -> "RunQuerySet":
        """Return the runs that wait for the last run of their reminder to end, and for no window."""
        return self.filter(status=RunStatus.QUEUED, opens_at__isnull=True)


class Run(models.Model):
    """One firing of a reminder, with a frozen copy of all that the engine needs of it."""

    class Kind(models.TextChoices):
        REMINDER = "reminder", "Reminder"
        SECOND = "second", "Second message"
        FOLLOW_UP = "follow_up", "Follow-up"
        MESSAGE = "message", "Single message"
        QUEUE = "queue", "Queue"

    reminder = models.ForeignKey("reminders.Reminder", on_delete=models.PROTECT, related_name="runs")
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="runs", db_index=False
    )
    key = models.UUIDField(default=uuid.uuid4, editable=False, unique=True)
    kind = models.CharField(max_length=10, choices=Kind, default=Kind.REMINDER)
    first_target = models.OneToOneField(
        "RunTarget",
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        editable=False,
        related_name="second_run",
        db_constraint=False,
        help_text="The target of the first message, if this run is its second message.",
    )
    due_at = models.DateTimeField(
        null=True, blank=True, help_text="The due moment; empty when fired by hand."
    )
    fired_at = models.DateTimeField()

    name = models.CharField(max_length=120)
    action = models.CharField(max_length=20)
    subject = models.CharField(max_length=200, blank=True)
    parts = models.JSONField(help_text="The parts of the message, as they were when the run was fired.")
    zone = models.CharField("time zone", max_length=64)
    window_start_hour = models.PositiveSmallIntegerField()
    window_end_hour = models.PositiveSmallIntegerField()
    send_days = models.PositiveSmallIntegerField()
    resumes_by_itself = models.BooleanField(default=False)
    priority = models.SmallIntegerField(default=0)
    on_time_first = models.BooleanField(
        default=False,
        db_default=False,
        help_text="Its messages leave at their planned times, and overdue ones slowly, as if the profile said so.",
    )
    drip_gap_min = models.PositiveIntegerField(
        null=True, blank=True, help_text="Seconds; set if every target has a planned time."
    )
    drip_gap_max = models.PositiveIntegerField(null=True, blank=True)

    status = models.CharField(max_length=10, choices=choices(RunStatus), default=RunStatus.QUEUED)
    pause_reason = models.CharField(max_length=20, choices=choices(PauseReason), blank=True)
    summary = models.TextField(blank=True, help_text="What happened, in a sentence for the operator.")
    opens_at = models.DateTimeField(null=True, blank=True, help_text="When it continues by itself.")
    closes_at = models.DateTimeField(null=True, blank=True, help_text="When its window closes.")
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)
    canceled_at = models.DateTimeField(null=True, blank=True, help_text="No message is sent after this time.")
    canceled_by = models.CharField(
        max_length=150, blank=True, default="", db_default="", help_text="The person's name at that time."
    )
    undo_until = models.DateTimeField(
        null=True,
        blank=True,
        help_text="Until when the person who sent it can take it back. Nothing leaves before.",
    )
    changed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    archived_at = models.DateTimeField(null=True, blank=True)
    details_removed_at = models.DateTimeField(
        null=True, blank=True, help_text="When pruning began to remove its targets; the counts stay."
    )
    details_left = models.BooleanField(
        default=True,
        db_default=True,
        editable=False,
        help_text="Whether pruning has something left to remove.",
    )

    # The counters at the last resume: the breaker counts from there; else a resumed run would pause again at once.
    sent_before = models.PositiveIntegerField(default=0, editable=False)
    failed_before = models.PositiveIntegerField(default=0, editable=False)
    unconfirmed_before = models.PositiveIntegerField(default=0, db_default=0, editable=False)
    returned_before = models.PositiveIntegerField(default=0, db_default=0, editable=False)

    total = models.PositiveIntegerField(default=0, editable=False)
    pending = models.PositiveIntegerField(default=0, editable=False)
    sending = models.PositiveIntegerField(default=0, editable=False)
    sent = models.PositiveIntegerField(default=0, editable=False)
    failed = models.PositiveIntegerField(default=0, editable=False)
    skipped = models.PositiveIntegerField(default=0, editable=False)
    unconfirmed = models.PositiveIntegerField(default=0, editable=False)
    returned = models.PositiveIntegerField(
        default=0,
        db_default=0,
        editable=False,
        help_text="Sent messages that a service later reported as failed, bounced or unwanted; a part of sent.",
    )
    left_out = models.PositiveIntegerField(
        default=0,
        db_default=0,
        editable=False,
        help_text="Skipped recipients who must not get the message, for example after an opt-out.",
    )

    objects = RunQuerySet.as_manager()

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(fields=["reminder", "due_at"], name="run_once_per_due_moment"),
            models.CheckConstraint(
                condition=Q(
                    total=F("pending")
                    + F("sending")
                    + F("sent")
                    + F("failed")
                    + F("skipped")
                    + F("unconfirmed")
                ),
                name="run_counts_add_up",
            ),
            models.CheckConstraint(condition=Q(left_out__lte=F("skipped")), name="run_left_out_are_skipped"),
            models.CheckConstraint(condition=Q(returned__lte=F("sent")), name="run_returned_were_sent"),
            models.CheckConstraint(
                condition=Q(status__in=[s.value for s in RunStatus]), name="run_status_known"
            ),
            models.CheckConstraint(
                condition=Q(status=RunStatus.PAUSED, pause_reason__in=[r.value for r in PauseReason])
                | (~Q(status=RunStatus.PAUSED) & Q(pause_reason="")),
                name="run_paused_for_a_reason",
            ),
            models.CheckConstraint(
                condition=~Q(status__in=sorted(s.value for s in SETTLED_RUN)) | Q(pending=0, sending=0),
                name="run_settled_leaves_nothing",
            ),
            models.CheckConstraint(
                condition=~Q(status=RunStatus.SUCCESS) | Q(sent=F("total") - F("left_out")),
                name="run_success_is_all_sent",
            ),
            models.CheckConstraint(
                condition=Q(window_start_hour__gte=0)
                & Q(window_start_hour__lt=F("window_end_hour"))
                & Q(window_end_hour__lte=24),
                name="run_window",
            ),
            models.CheckConstraint(condition=Q(send_days__range=(1, 127)), name="run_send_days"),
            models.CheckConstraint(
                condition=Q(drip_gap_min__isnull=True, drip_gap_max__isnull=True)
                | Q(
                    drip_gap_min__isnull=False,
                    drip_gap_max__isnull=False,
                    drip_gap_min__lte=F("drip_gap_max"),
                ),
                name="run_drip_gap",
            ),
            models.CheckConstraint(
                condition=Q(kind__in=["reminder", "second", "follow_up", "message", "queue"]),
                name="run_kind_known",
            ),
            models.CheckConstraint(
                condition=Q(first_target__isnull=True) | Q(kind="second"), name="run_second_alone_has_a_first"
            ),
            models.CheckConstraint(
                condition=Q(action__in=["message", "email", "connection_request", "inmail"]),
                name="run_action_known",
            ),
        ]
        indexes = [
            models.Index(fields=["owner", "-id"], name="run_by_owner"),
            models.Index(fields=["owner", "status", "-id"], name="run_by_owner_status"),
            models.Index(fields=["owner", "kind", "-id"], name="run_by_owner_kind"),
            models.Index(fields=["closes_at"], condition=Q(status=RunStatus.RUNNING), name="run_closing"),
            models.Index(
                fields=["opens_at"],
                condition=Q(status__in=[RunStatus.QUEUED, RunStatus.PAUSED], opens_at__isnull=False),
                name="run_opening",
            ),
            models.Index(
                fields=["id"],
                condition=Q(status=RunStatus.QUEUED, opens_at__isnull=True),
                name="run_behind",
            ),
            models.Index(
                fields=["canceled_at"],
                condition=Q(status=RunStatus.PAUSED, canceled_at__isnull=False),
                name="run_canceling",
            ),
            models.Index(
                fields=["finished_at"],
                condition=Q(details_left=True, finished_at__isnull=False),
                name="run_to_prune",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name} (run {self.pk})"

    @property
    def expected(self) -> int:
        """Return the number that "of" means wherever the progress of a run is shown.

        Counts targets that could be sent: excludes opted-out ones, includes canceled ones.
        """
        return self.total - self.left_out

    @property
    def has_own_contents(self) -> bool:
        """Return whether each of its targets has a content of its own, of which `parts` only has the shape."""
        return self.kind == Run.Kind.QUEUE

    @property
    def around_the_clock(self) -> bool:
        """Return whether the run's window never closes."""
        return (self.window_start_hour, self.window_end_hour, self.send_days) == (0, 24, 127)

    @property
    def goes_on_by_itself(self) -> bool:
        """Return whether the run is paused now but continues without a person, so that a person may still pause it."""
        waits = self.opens_at is not None or self.pause_reason in GO_ON_WITH_THEIR_ACCOUNT
        return self.status == RunStatus.PAUSED and self.canceled_at is None and waits

    @property
    def waits_for_a_person(self) -> bool:
        """Return whether the run is paused and does not continue without a person."""
        return self.status == RunStatus.PAUSED and self.canceled_at is None and not self.goes_on_by_itself

    @property
    def being_canceled(self) -> bool:
        """Return whether the run was canceled and its last targets have no result yet."""
        return self.status == RunStatus.PAUSED and self.canceled_at is not None

    @property
    def was_canceled(self) -> bool:
        """Return whether the run has ended because a person canceled it, also after some messages were sent."""
        return self.canceled_at is not None and self.status in {RunStatus.CANCELED, RunStatus.PARTIAL}

    @property
    def may_be_undone(self) -> bool:
        """Return whether a run that was sent by hand waits only so that its sender can take it back."""
        held = self.undo_until is not None and self.opens_at == self.undo_until
        return self.status == RunStatus.QUEUED and held

    @property
    def shown_status(self) -> str:
        """Return the status as people read it: canceling and canceled say more than paused and partial."""
        if self.being_canceled:
            return "canceling"
        return RunStatus.CANCELED.value if self.was_canceled else self.status

    @property
    def drip(self) -> tuple[int, int] | None:
        """Return the shortest and the longest seconds between two targets, where each has a planned time; else None."""
        if self.drip_gap_min is None or self.drip_gap_max is None:
            return None
        return self.drip_gap_min, self.drip_gap_max


class RunAccount(models.Model):
    """One account's share of a run. Through these rows an account finds the runs that it serves."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="run_accounts")
    account = models.ForeignKey(
        Account, on_delete=models.PROTECT, related_name="run_accounts", db_index=False
    )
    open = models.BooleanField(default=True)
    waits = models.BooleanField(
        default=False,
        db_default=False,
        editable=False,
        help_text="The account cannot send: what it has left waits for it, and the run goes on without it.",
    )

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run", "account"], name="run_account_once")]
        indexes = [
            models.Index(fields=["account"], condition=Q(open=True), name="run_account_open"),
            models.Index(fields=["account", "-run"], name="run_account_newest"),
            models.Index(fields=["run"], condition=Q(open=True, waits=True), name="run_account_waits"),
        ]

    def __str__(self) -> str:
        return f"{self.account} in {self.run}"


class RunTarget(models.Model):
    """One recipient in one run, sent by one account."""

    # No foreign key constraints: a million rows are made by one INSERT ... SELECT from the rows they name, and
    # three checks per row made that three times as slow (docs/decisions/0003-indexes.md).
    run = models.ForeignKey(
        Run, on_delete=models.CASCADE, related_name="targets", db_index=False, db_constraint=False
    )
    recipient = models.ForeignKey(
        Recipient, on_delete=models.PROTECT, related_name="targets", db_index=False, db_constraint=False
    )
    account = models.ForeignKey(
        Account, on_delete=models.PROTECT, related_name="targets", db_index=False, db_constraint=False
    )
    item_id = models.BigIntegerField(
        default=0, db_default=0, editable=False, help_text="The item of a queue that it sends; else 0."
    )
    status = models.CharField(max_length=12, choices=choices(TargetStatus), default=TargetStatus.PENDING)
    not_before = models.DateTimeField(db_default=Now())
    attempts = models.PositiveSmallIntegerField(default=0, db_default=0)
    parts_done = models.PositiveSmallIntegerField(default=0, db_default=0)

    fence = models.BigIntegerField(null=True, blank=True, editable=False)
    claimed_at = models.DateTimeField(null=True, blank=True, editable=False)
    new_person = models.PositiveSmallIntegerField(
        default=0,
        db_default=0,
        editable=False,
        help_text="What its next message uses up of the limits of new people, as when it was claimed.",
    )
    begun_at = models.DateTimeField(null=True, blank=True, editable=False)

    settled_at = models.DateTimeField(null=True, blank=True)
    provider_id = models.CharField(
        max_length=255,
        blank=True,
        default="",
        db_default="",
        help_text="The service's id of the last part that was sent.",
    )
    earlier_ids = ArrayField(
        models.CharField(max_length=255),
        null=True,
        blank=True,
        help_text="The service's ids of the parts before it.",
    )
    continues = ArrayField(
        models.CharField(max_length=255),
        null=True,
        blank=True,
        help_text="The ids of the e-mails whose conversation this one continues.",
    )
    error = models.CharField(max_length=500, blank=True, default="", db_default="")
    delivered_at = models.DateTimeField(null=True, blank=True)
    read_at = models.DateTimeField(null=True, blank=True)
    returned_at = models.DateTimeField(
        null=True, blank=True, help_text="When the service first reported that the message failed after all."
    )
    return_kind = models.CharField(
        max_length=10, choices=choices(ReturnKind), blank=True, default="", db_default=""
    )
    return_reason = models.CharField(max_length=500, blank=True, default="", db_default="")

    class Meta:
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(
                fields=["recipient", "run", "item_id"], name="target_once_per_run_and_item"
            ),
            models.CheckConstraint(
                condition=Q(status__in=[s.value for s in TargetStatus]), name="target_status_known"
            ),
            models.CheckConstraint(
                condition=Q(status=TargetStatus.SENDING, fence__isnull=False, claimed_at__isnull=False)
                | (~Q(status=TargetStatus.SENDING) & Q(begun_at__isnull=True)),
                name="target_begun_only_while_sending",
            ),
            models.CheckConstraint(
                condition=Q(returned_at__isnull=True, return_kind="")
                | Q(returned_at__isnull=False, return_kind__in=[kind.value for kind in ReturnKind]),
                name="target_returned_of_a_kind",
            ),
        ]
        indexes = [
            models.Index(
                fields=["account", "run", "not_before", "id"],
                condition=Q(status=TargetStatus.PENDING),
                name="target_claim",
            ),
            models.Index(
                fields=["account", "claimed_at"],
                condition=Q(status=TargetStatus.SENDING),
                name="target_rescue",
            ),
            models.Index(fields=["run", "status", "id"], name="target_by_status"),
            models.Index(
                fields=["run", "id"], condition=Q(returned_at__isnull=False), name="target_returned"
            ),
            models.Index(
                fields=["account", "provider_id"], condition=~Q(provider_id=""), name="target_by_provider_id"
            ),
            GinIndex(
                fields=["earlier_ids"], condition=Q(earlier_ids__isnull=False), name="target_by_earlier_id"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.recipient} in {self.run}"

    @property
    def key(self) -> str:
        """Return the name of this target for a service, the same in every attempt; each part adds its number."""
        return target_key(self.run.key, self.pk)


class TargetContent(models.Model):
    """The content of one target, where each target of its run has its own.

    Without `parts`, the target says the parts of its run, with these values.
    """

    target = models.OneToOneField(
        RunTarget, on_delete=models.CASCADE, primary_key=True, related_name="content", db_constraint=False
    )
    subject = models.TextField(blank=True, default="", db_default="")
    parts = models.JSONField(null=True, blank=True, help_text="Its own parts, in the form of a run's parts.")
    values = models.JSONField(
        default=dict, blank=True, help_text="Variables of its own; they go before those of its recipient."
    )

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(parts__isnull=True) | ~Q(parts=[]), name="target_content_is_not_empty"
            )
        ]

    def __str__(self) -> str:
        return f"Content of target {self.target_id}"


class MediaHandle(models.Model):
    """The handle that a service gave for a media file, which is uploaded once per run and account."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="media_handles")
    account = models.ForeignKey(Account, on_delete=models.CASCADE, related_name="+", db_index=False)
    sha256 = models.CharField(max_length=64)
    handle = models.CharField(max_length=500)
    uploaded_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["run", "account", "sha256"], name="media_uploaded_once")
        ]

    def __str__(self) -> str:
        return f"{self.sha256[:12]} for {self.run}"
