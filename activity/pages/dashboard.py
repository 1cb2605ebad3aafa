"""The dashboard: open decisions, current runs, the next reminders, and the use of the accounts."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.db.models import Exists, OuterRef, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone

from accounts.access import user_of
from accounts.models import Account, Recipient, Role, User
from accounts.roles import touchable, visible
from activity.pages.approvals import waiting_for
from activity.pages.hours import last_day
from activity.pages.use import nearest_to_their_limits
from delivery.models import Run
from delivery.pages.account_facts import allowed_actions
from delivery.pages.remedies import remedies_of_all
from delivery.progress import Sender, senders_of
from delivery.sentences import account_state
from delivery.states import RunStatus
from reminders.headcount import headcount
from reminders.models import Reminder, ReminderAccount

SHOWN = 5
STOPPED = (Account.Status.OFFLINE, Account.Status.FLAGGED)
MISSED_WITHIN = timedelta(days=3)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One of the three steps before the first message can be sent."""

    title: str
    text: str
    url: str
    done: bool


@login_required
def dashboard(request: HttpRequest) -> HttpResponse:
    user = user_of(request)
    if not visible(Run.objects.all(), user).exists():
        steps = first_steps(user)
        next_step = next((step for step in steps if not step.done), None)
        if next_step:
            return render(request, "activity/welcome.html", {"steps": steps, "next_step": next_step})
    return render(request, "activity/dashboard.html", overview(user) | {"practice": practice_of(user)})


@dataclass(frozen=True, slots=True, kw_only=True)
class Practice:
    """A reminder that is ready to be sent to the sandbox, where its messages arrive, and to how many."""

    reminder: Reminder
    words: str
    sandbox: str


def practice_of(user: User) -> Practice | None:
    """Return what a newcomer can try without any harm: of somebody who has sent nothing yet."""
    if Run.objects.filter(owner=user).exists():
        return None
    manual = Reminder.objects.filter(
        owner=user,
        archived_at=None,
        status=Reminder.Status.SCHEDULED,
        schedule=Reminder.Schedule.BY_HAND,
        accounts__transport="sandbox",
    )
    reminder = manual.exclude(Exists(_real_accounts())).order_by("pk").distinct().first()
    if reminder is None:
        return None
    reached = headcount(reminder)
    words = reached.words_of_complete.replace(" ", " practice ", 1)
    address = str(getattr(settings, "SANDBOX_URL", ""))
    return Practice(reminder=reminder, words=words, sandbox=address) if reached.complete else None


def _real_accounts() -> QuerySet[ReminderAccount]:
    shares = ReminderAccount.objects.filter(reminder=OuterRef("pk"))
    return shares.exclude(account__transport="sandbox")


def first_steps(user: User) -> list[Step]:
    ready = Reminder.objects.filter(archived_at=None).exclude(status=Reminder.Status.DRAFT)
    return [
        Step(
            title="Connect an account",
            text="A WhatsApp number, a mailbox, or a LinkedIn or Matrix account. Its limits protect it.",
            url="accounts:list",
            done=visible(Account.objects.filter(archived_at=None), user).exists(),
        ),
        Step(
            title="Add recipients",
            text="Groups are read from the account. People are added from a CSV or XLSX file.",
            url="recipients:list",
            done=visible(Recipient.objects.filter(archived_at=None), user).exists(),
        ),
        Step(
            title="Schedule a reminder",
            text="Choose the message, the recipients and the time. Paceline shows whether it fits the window.",
            url="reminders:list",
            done=visible(ready, user).exists(),
        ),
    ]


def overview(user: User) -> dict[str, Any]:
    """Return the content of the dashboard: of each list the first few rows, and one more to know if it goes on."""
    runs = _newest(Run.objects.all(), user)
    now = timezone.now()
    recently = now - MISSED_WITHIN
    # Second messages come and go by themselves, one for each reply.
    shown = runs.exclude(kind=Run.Kind.SECOND)
    paused = list(_newest(Run.objects.resumable(), user).exclude(kind=Run.Kind.SECOND)[: SHOWN + 1])
    missed = list(runs.filter(status=RunStatus.SKIPPED, fired_at__gte=recently)[: SHOWN + 1])
    unconfirmed = list(runs.filter(unconfirmed__gt=0)[: SHOWN + 1])
    stopped = _stopped_accounts(user)
    going = list(shown.filter(status__in=[RunStatus.RUNNING, RunStatus.QUEUED])[: SHOWN + 1])
    running = [*_newest(Run.objects.canceling(), user)[: SHOWN + 1], *going][: SHOWN + 1]
    mine = _touched(Run.objects.all(), user, [run.pk for run in paused + missed + unconfirmed])
    remedies = allowed_actions(stopped, user)
    approvals = waiting_for(user, most=SHOWN)
    asked = any(decides for _, decides in approvals)
    return {
        "approvals": approvals,
        "paused": paused,
        "missed": missed,
        "unconfirmed": unconfirmed,
        "stopped": stopped,
        "whys": account_state.whys(stopped, now=now) if stopped else {},
        "run_remedies": remedies_of_all(paused[:SHOWN], user),
        "remedies": remedies,
        "calm": not (paused or missed or unconfirmed or stopped or approvals),
        "mine": mine,
        # Somebody who may only read is not told to decide.
        "decides": bool(mine or remedies or asked)
        or not (paused or missed or unconfirmed or stopped or approvals),
        "running": running,
        "senders": _first_senders(running[:SHOWN]),
        "coming": _coming(user),
        "use": nearest_to_their_limits(user, now),
        "hours": last_day(user, now),
        "shown": SHOWN,
    }


def _newest(runs: QuerySet[Run], user: User) -> QuerySet[Run]:
    """Return those of the runs that the user sees on the dashboard, newest first."""
    return visible(runs.filter(archived_at=None).defer("parts"), user).order_by("-id")


def _first_senders(runs: list[Run]) -> dict[int, Sender]:
    """Return for each running run the account whose sentence a reader has to know first."""
    return {pk: senders[0] for pk, senders in senders_of(runs).items() if senders}


def _touched(rows: QuerySet[Any], user: User, ids: list[int]) -> set[int]:
    """Return the ids of those of the rows that the user may change."""
    return (
        set(touchable(rows.filter(pk__in=ids), user, Role.SEND).values_list("pk", flat=True))
        if ids
        else set()
    )


def _stopped_accounts(user: User) -> list[Account]:
    rows = Account.objects.filter(archived_at=None, status__in=STOPPED).defer("credentials")
    return list(visible(rows, user).order_by("name")[: SHOWN + 1])


def _coming(user: User) -> list[Reminder]:
    rows = Reminder.objects.filter(
        status=Reminder.Status.SCHEDULED, archived_at=None, next_fire_at__isnull=False
    )
    return list(visible(rows, user).order_by("next_fire_at")[: SHOWN + 1])
