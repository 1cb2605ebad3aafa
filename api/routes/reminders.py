"""Reminders: drafts, their message, audience and times; scheduling and firing."""

from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from ninja import Path, Query, Router, Status

from accounts.models import Account, Approval, Recipient, Role, Tag
from accounts.roles import require_touch, visible
from api.access import MANAGE, READ, SEND, STEER, person_of, require_scope
from api.paging import page
from api.problems import ProblemError, refusal
from api.routes import reminder_shapes as shapes
from api.routes import run_shapes, writing
from api.routes.rows import all_of, owner_for, seen, touched
from api.schemas.base import Id, Page
from api.schemas.reminders import (
    AudienceGiven,
    AudienceShown,
    ContentShown,
    Fired,
    FireGiven,
    ForecastShown,
    MessageGiven,
    ReminderDetail,
    ReminderGiven,
    RemindersAsked,
    ReminderShown,
    ScheduleGiven,
    TimesGiven,
)
from api.scopes import Scope
from delivery.audience import Audience
from reminders import audience, drafts, scheduling
from reminders.by_hand.content import content_of, require_content
from reminders.by_hand.last_look import LastLook
from reminders.by_hand.send import send
from reminders.fire import refuse_drafts
from reminders.forecast import forecast
from reminders.headcount import headcount
from reminders.models import Reminder
from reminders.readiness import problems, why_not_now

router = Router(tags=["Reminders"])


def _rows() -> QuerySet[Reminder]:
    return Reminder.objects.select_related("owner")


@router.get("", response=Page[ReminderShown], auth=READ)
def list_reminders(request: HttpRequest, asked: Query[RemindersAsked]) -> Page[ReminderShown]:
    """Return the reminders, the newest first, each with when it leaves."""
    rows = visible(Reminder.objects.all(), person_of(request)).filter(archived_at__isnull=not asked.archived)
    for name in ("status", "owner"):
        if (value := getattr(asked, name)) is not None:
            rows = rows.filter(**{name: value})
    return page(rows, asked, shapes.reminders, newest_first=True)


@router.get("/{int:pk}", response=ReminderDetail, auth=READ)
def show_reminder(request: HttpRequest, pk: Path[Id]) -> ReminderDetail:
    """Return one reminder with its message, and what is missing before it can be scheduled."""
    return shapes.detail(seen(_rows(), request, pk))


@router.post("", response={201: ReminderDetail}, auth=MANAGE)
def make_reminder(request: HttpRequest, body: ReminderGiven) -> Status[ReminderDetail]:
    """Make a draft."""
    reminder = drafts.create(
        owner_for(request, body.owner, Role.WRITE), name=body.name, by=person_of(request)
    )
    return Status(201, shapes.detail(reminder))


@router.put("/{int:pk}/message", response=ReminderDetail, auth=MANAGE)
def write_message(request: HttpRequest, pk: Path[Id], body: MessageGiven) -> ReminderDetail:
    """Write the name, the subject and the parts of the message. Of a scheduled reminder it needs `send`, too."""
    reminder = _changeable(request, pk)
    writing.write_message(reminder, body, by=person_of(request))
    return _again(pk)


@router.put("/{int:pk}/audience", response=AudienceShown, auth=MANAGE)
def choose_audience(request: HttpRequest, pk: Path[Id], body: AudienceGiven) -> AudienceShown:
    """Choose accounts, tags and recipients. Larger audiences take several calls, or a tag.

    Of a scheduled reminder it needs the scope `send`, too.
    """
    reminder, by = _changeable(request, pk), person_of(request)
    if body.accounts is not None or body.action is not None:
        ids = shapes.account_ids(reminder) if body.accounts is None else body.accounts
        accounts = all_of(Account.objects.defer("credentials"), request, ids, "accounts")
        reminder = audience.choose_accounts(reminder, accounts, action=body.action or "", by=by)
    if body.tags is not None:
        tags = all_of(Tag.objects.filter(owner=reminder.owner_id), request, body.tags, "tags")
        audience.choose_tags(reminder, [str(tag.pk) for tag in tags], by=by)
    mine = Recipient.objects.filter(owner=reminder.owner_id)
    if body.add:
        all_of(mine, request, body.add, "add")
        audience.choose(reminder, mine.filter(pk__in=body.add), by=by)
    if body.remove:
        audience.unchoose(reminder, mine.filter(pk__in=body.remove), by=by)
    return shapes.audience(reminder, headcount(reminder))


@router.get("/{int:pk}/audience", response=AudienceShown, auth=READ)
def show_audience(request: HttpRequest, pk: Path[Id]) -> AudienceShown:
    """Return how many it reaches, and who is left out and why."""
    reminder = seen(_rows(), request, pk)
    return shapes.audience(reminder, headcount(reminder))


@router.put("/{int:pk}/times", response=ReminderDetail, auth=MANAGE)
def set_times(request: HttpRequest, pk: Path[Id], body: TimesGiven) -> ReminderDetail:
    """Set when it is sent and in which hours. A scheduled reminder follows at once, so it needs `send`, too."""
    reminder = _changeable(request, pk)
    writing.set_times(reminder, body)
    scheduling.save_times(reminder, by=person_of(request))
    return _again(pk)


@router.get("/{int:pk}/forecast", response=ForecastShown, auth=READ)
def show_forecast(request: HttpRequest, pk: Path[Id]) -> ForecastShown:
    """Return how its next run will go: when it begins, pauses and ends."""
    return shapes.forecast(forecast(seen(_rows(), request, pk), now=timezone.now()))


@router.get("/{int:pk}/content", response=ContentShown, auth=READ)
def show_content(request: HttpRequest, pk: Path[Id]) -> ContentShown:
    """Return a fingerprint of the message, of everybody who gets it, of the accounts and of the times.

    Ask for it before you show the reminder to a person, and send it back with `schedule` or `fire`: if anything was
    changed meanwhile, nothing is done and the answer is 409 `changed`.
    """
    return ContentShown(content=content_of(seen(_rows(), request, pk)))


@router.post("/{int:pk}/schedule", response=ReminderDetail, auth=SEND)
def schedule(request: HttpRequest, pk: Path[Id], body: ScheduleGiven | None = None) -> ReminderDetail:
    """Switch it on as it is saved. Everything that is missing is in `errors`.

    Where a second person has to approve it, `approval` is the request: it is sent only if that is approved in time.
    """
    reminder, by = touched(_rows(), request, pk, Role.SEND), person_of(request)
    if body is not None and body.content:
        require_content(reminder, body.content, by=by)
    scheduling.schedule(reminder, by=by)
    return _again(pk)


@router.post("/{int:pk}/switch-off", response=ReminderDetail, auth=STEER)
def switch_off(request: HttpRequest, pk: Path[Id]) -> ReminderDetail:
    """Stop further firings. A run that is under way goes on: cancel it to stop it."""
    scheduling.switch_off(touched(_rows(), request, pk, Role.SEND), by=person_of(request))
    return _again(pk)


@router.post("/{int:pk}/fire", response=Fired, auth=SEND)
def fire_reminder(request: HttpRequest, pk: Path[Id], body: FireGiven | None = None) -> Fired:
    """Send it now, inside its delivery hours; or say in a dry run what would happen, and change nothing.

    Where a second person has to approve it, there is no run yet: `approval` is the request that it waits for.
    """
    reminder, asked, now = touched(_rows(), request, pk, Role.SEND), body or FireGiven(), timezone.now()
    reached = headcount(reminder)
    foreseen = forecast(reminder, now=now, fires_at=now, reached=reached)
    refuse_drafts(reminder)
    if late := why_not_now(reminder, now):
        raise refusal(409, "wrong-state", late)
    if asked.dry_run:
        _refuse_incomplete(reminder)
        return shapes.fired(reminder, reached, foreseen, run=None)
    if asked.content:
        require_content(reminder, asked.content, by=person_of(request))
    _refuse_short(reached, asked)
    found = send(reminder, by=person_of(request), said=_said(asked))
    if isinstance(found, LastLook):
        raise _unconfirmed(found)
    if isinstance(found, Approval):
        return shapes.waits(shapes.fired(reminder, reached, foreseen, run=None), found)
    return shapes.fired(reminder, reached, foreseen, run=run_shapes.detail(found))


@router.post("/{int:pk}/duplicate", response={201: ReminderDetail}, auth=MANAGE)
def duplicate(request: HttpRequest, pk: Path[Id]) -> Status[ReminderDetail]:
    """Make a draft with the same message, recipients, accounts and window."""
    copy = drafts.duplicate(touched(_rows(), request, pk, Role.WRITE), by=person_of(request))
    return Status(201, shapes.detail(copy))


@router.post("/{int:pk}/archive", response=ReminderDetail, auth=MANAGE)
def archive_reminder(request: HttpRequest, pk: Path[Id]) -> ReminderDetail:
    """Archive it; its runs stay."""
    drafts.archive(_edited(request, pk), by=person_of(request))
    return _again(pk)


@router.post("/{int:pk}/unarchive", response=ReminderDetail, auth=MANAGE)
def unarchive_reminder(request: HttpRequest, pk: Path[Id]) -> ReminderDetail:
    """Bring it back."""
    drafts.unarchive(_edited(request, pk), by=person_of(request))
    return _again(pk)


@router.delete("/{int:pk}", response={204: None}, auth=MANAGE)
def discard_draft(request: HttpRequest, pk: Path[Id]) -> Status[None]:
    """Delete a draft that never ran."""
    drafts.discard(_edited(request, pk), by=person_of(request))
    return Status(204, None)


def _edited(request: HttpRequest, pk: int) -> Reminder:
    """Return the reminder if the key's person may edit it as it is now."""
    reminder = seen(_rows(), request, pk)
    require_touch(reminder, person_of(request), reminder.role_to_edit)
    return reminder


def _changeable(request: HttpRequest, pk: int) -> Reminder:
    """Return the reminder; raises a problem where it is scheduled and the key may not send: a change would leave."""
    reminder = _edited(request, pk)
    if reminder.status == Reminder.Status.SCHEDULED:
        require_scope(request, Scope.SEND, "The reminder is scheduled: what you change is what will be sent.")
    return reminder


def _again(pk: int) -> ReminderDetail:
    return shapes.detail(_rows().get(pk=pk))


def _said(asked: FireGiven) -> dict[str, str]:
    """Return the answers as the form of a page sends them."""
    said = {"again": asked.again or ""} | ({"without": "1"} if asked.without_short else {})
    return said if asked.number is None else said | {"confirmed": "1", "number": str(asked.number)}


def _unconfirmed(look: LastLook) -> ProblemError:
    """Return the refusal of a firing that a person has to confirm: the rule of the pages."""
    if look.why_not:
        return refusal(409, "wrong-state", look.why_not)
    asked = {"number": look.large, "again": look.repeat, "without_short": look.audience.short}
    fields = [name for name, needed in asked.items() if needed]
    extra = {
        "number": look.audience.complete,
        "received": look.repeat.received if look.repeat else 0,
        "unconfirmed": look.repeat.unconfirmed if look.repeat else 0,
    }
    words = f"{' '.join(look.sentences)} Send again with {' and '.join(fields)}."
    return refusal(409, "confirmation-needed", words, extra=extra)


def _refuse_short(reached: Audience, asked: FireGiven) -> None:
    """Refuse to leave people out unasked: the rule of the pages."""
    if reached.short and not asked.without_short:
        raise refusal(
            409,
            "confirmation-needed",
            f"{reached.short:,} recipients lack a value that the message needs, and would get nothing. "
            "Complete them, or send again with without_short.",
            extra={"short": reached.short, "lacking": dict(reached.lacking)},
        )


def _refuse_incomplete(reminder: Reminder) -> None:
    steps = {problem.step: problem.sentence for problem in problems(reminder)}
    found = [sentence for step, sentence in steps.items() if step in {"message", "accounts", "recipients"}]
    if found:
        raise refusal(409, "wrong-state", " ".join(found))
