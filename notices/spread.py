"""Passes notifications on: to the team members who want them, and to the addresses of the person who has them.

1. Take the oldest rows of the outbox, few of each owner, and lock them.
2. A notification of an owner becomes one of each active team member who follows the owner. People who may only read get
   it without the request to decide, and not at all where it is nothing but that request.
3. It becomes a notice for each address that wants its kind; one that still waits there about the same takes it up.
4. A run or an account that waits for a person is remembered, so that it can be told again (`escalate`).
5. Delete the rows. All of this is one transaction: a worker that dies leaves it to the next one.
"""

from datetime import datetime, timedelta

from django.db import connection, transaction
from django.utils import timezone

from accounts.models import Role, TeamMate, User
from accounts.roles import touchable
from activity.models import Notification, NotificationOutbox
from activity.notify import DECIDE, tell
from delivery.models import Run
from notices import escalate
from notices.models import Follow, Notice, NoticeAddress
from notices.moments import due_at
from notices.preferences import rules_of

AT_ONCE, EACH = 200, 20  # rows of one round, and of one owner in it
KEPT_TRYING = timedelta(days=1)
TEAM = "team:"  # begins the key of a notification that was passed on
REQUESTS = frozenset({Notification.Kind.WAITING, Notification.Kind.APPROVAL})

TAKE = """
WITH waiting AS (
    SELECT o.notification_id AS id, row_number() OVER (PARTITION BY n.owner_id ORDER BY n.id) AS place
    FROM activity_notificationoutbox o JOIN activity_notification n ON n.id = o.notification_id
)
SELECT o.notification_id FROM activity_notificationoutbox o JOIN waiting w ON w.id = o.notification_id
WHERE w.place <= %(each)s ORDER BY w.place, o.notification_id LIMIT %(most)s
FOR UPDATE OF o SKIP LOCKED
"""


@transaction.atomic
def spread() -> int:
    """Pass the next notifications on; return how many there were."""
    with connection.cursor() as cursor:
        cursor.execute(TAKE, {"each": EACH, "most": AT_ONCE})
        ids = [row[0] for row in cursor.fetchall()]
    found = Notification.objects.filter(pk__in=ids).select_related("owner", "run").defer("run__parts")
    now = timezone.now()
    for made in found.order_by("pk"):
        pass_on(made, now=now)
    NotificationOutbox.objects.filter(pk__in=ids).delete()
    return len(ids)


def pass_on(made: Notification, *, now: datetime) -> None:
    """Pass one notification on to everybody who wants it."""
    if not made.key.startswith(TEAM):
        _to_followers(made)
        _begin_to_wait(made, now=now)
    if made.owner.is_active:
        _to_addresses(made, now=now)


def _begin_to_wait(made: Notification, *, now: datetime) -> None:
    """Remember the run or the account that the notification is about, if it waits for a person."""
    if made.run is not None and made.kind in escalate.BEGINS:
        escalate.begin(made.run, now=now)
    elif made.kind == Notification.Kind.ACCOUNT and subject_of(made.key).startswith("account:"):
        escalate.begin_account(int(subject_of(made.key).removeprefix("account:")), now=now)


def _to_followers(made: Notification) -> None:
    if made.kind == Notification.Kind.WAITING:
        return  # `escalate` tells the next person
    mates = TeamMate.objects.filter(owner=made.owner_id).values("mate")
    follows = Follow.objects.filter(owner=made.owner_id, person__in=mates, person__is_active=True)
    for follow in follows.select_related("person"):
        _to_follower(made, follow.person)


def _to_follower(made: Notification, mate: User) -> None:
    decides = may_decide(made.run_id, mate)
    if made.kind in REQUESTS and not decides:
        return
    tell(
        mate.pk,
        Notification.Kind(made.kind),
        key=f"{TEAM}{made.owner_id}:{made.key}"[:100],
        title=f"{made.title[:90]} ({made.owner})",
        body=made.body if decides else made.body.removesuffix(DECIDE),
        url=made.url,
        run_id=made.run_id if decides else None,  # the run puts buttons on the notification
    )


def may_decide(run_id: int | None, person: User) -> bool:
    """Return whether the person may resume or cancel the run; where there is none, nothing is to be decided."""
    return run_id is not None and touchable(Run.objects.filter(pk=run_id), person, Role.SEND).exists()


def _to_addresses(made: Notification, *, now: datetime) -> None:
    rows = NoticeAddress.objects.filter(person=made.owner_id, switched_off_at=None).exclude(confirmed_at=None)
    wanted = rows.filter(kinds__contains=[made.kind]).select_for_update(no_key=True).order_by("pk")
    for address in wanted:
        put(address, made, now=now)


def put(address: NoticeAddress, made: Notification, *, now: datetime) -> None:
    """Write a notice for a locked address, or let the one that waits there about the same take it up."""
    subject = subject_of(made.key)
    same = Notice.objects.filter(address=address, kind=made.kind, subject=subject)
    told = {"title": made.title, "body": made.body, "url": made.url, "happened_at": made.created_at}
    waiting = same.filter(state=Notice.State.PENDING, message=None).first()
    if waiting is not None:
        same.filter(pk=waiting.pk).update(**told, number=waiting.number + 1)
        return
    last = (
        same.filter(state=Notice.State.SENT).order_by("-ended_at").values_list("ended_at", flat=True).first()
    )
    due = due_at(now, rules_of(address), same_sent_at=last, last_sent_at=address.last_sent_at)
    Notice.objects.create(
        address=address, kind=made.kind, subject=subject, due_at=due, give_up_at=due + KEPT_TRYING, **told
    )


def subject_of(key: str) -> str:
    """Return what a notification is about: the beginning of its key, such as run:7."""
    words = key.split(":")
    if key.startswith(TEAM):
        words = words[2:]
    return ":".join(words[:2])[:100]
