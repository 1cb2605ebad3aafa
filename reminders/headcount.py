"""The number of recipients that a reminder reaches, for pages.

A short audience is counted each time. Counting a long one takes longer than a page may, so the count is kept for a
few minutes, and deleted when the choice changes. A page that shows an older number asks for a new count
(static/js/recount.js). What is sent never depends on it: a run is made of the rows.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta

import structlog
from django.db.models import Model, QuerySet
from django.utils import timezone
from redis.exceptions import RedisError

from accounts.models import Account
from config.redis.client import client
from delivery import audience
from delivery.audience import Audience
from delivery.parts import variables
from delivery.planning.rooms import able_of
from reminders.models import Part, Reminder

log = structlog.get_logger(__name__)

KEPT_ABOVE = 5_000  # recipients
KEPT_SECONDS = 600
FRESH = timedelta(seconds=15)


# The effects of a missing variable, the worst first: people who miss the message get nothing after it either.
NOTHING = "they get nothing"
NO_SECOND = "they get no second message"
NO_FOLLOW_UP = "they get no follow-up"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lack:
    """A variable that `count` recipients have no value for."""

    name: str
    count: int
    whom: str  # the count with its noun: 3 people
    loss: str

    def __str__(self) -> str:
        return f"{{{{ {self.name} }}}} is missing for {self.whom}: {self.loss}."


@dataclass(frozen=True, slots=True, kw_only=True)
class Texts:
    """All texts of a reminder, in the order in which they are sent."""

    first: Sequence[str]  # with the subject
    second: Sequence[str] = ()
    follow_ups: Sequence[str] = ()

    @property
    def losses(self) -> dict[str, str]:
        """Return, by variable, the worst effect for recipients who lack it."""
        said = ((NO_FOLLOW_UP, self.follow_ups), (NO_SECOND, self.second), (NOTHING, self.first))
        return {name: loss for loss, texts in said for text in texts for name in variables(text)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Senders:
    """The accounts of a reminder in their order, and those that are able to send."""

    ids: Sequence[int]
    able: Sequence[int]


def texts_of(reminder: Reminder) -> Texts:
    """Return the texts as they are saved."""
    rows = reminder.parts.order_by("role", "position").values_list("role", "text", "other_wordings")
    texts = [(role, text) for role, first, others in rows for text in (first, *(others or ()))]
    return Texts(
        first=[reminder.subject, *(text for role, text in texts if role == Part.Role.FIRST)],
        second=[text for role, text in texts if role == Part.Role.SECOND],
        follow_ups=follow_ups_of(reminder),
    )


def follow_ups_of(reminder: Reminder) -> list[str]:
    return list(reminder.follow_up_steps.values_list("text", flat=True))


def lacks(reached: Audience, texts: Texts) -> list[Lack]:
    """Return the variables that these texts need and counted recipients lack."""
    losses = texts.losses
    return [
        Lack(name=name, count=count, whom=reached.counted(count), loss=losses[name])
        for name, count in reached.lacking.items()
    ]


def account_ids(reminder: Reminder) -> list[int]:
    """Return the ids in the order in which targets are divided."""
    shares = reminder.reminder_accounts.order_by("position", "id")
    return list(shares.values_list("account_id", flat=True))


def headcount(
    reminder: Reminder, accounts: Sequence[int] | None = None, *, texts: Texts | None = None
) -> Audience:
    """Return the audience it would reach, and who lacks a variable of the saved texts, or of `texts`."""
    accounts = account_ids(reminder) if accounts is None else accounts
    losses = (texts or texts_of(reminder)).losses
    senders = Senders(ids=accounts, able=able_of(accounts))
    found = _kept(reminder, senders, losses) or _count(reminder, senders, losses)
    return replace(found, names=_names(found.kept)) if found.kept else found


def _names(account_ids: Iterable[int]) -> dict[int, str]:
    rows = Account.objects.filter(pk__in=list(account_ids))
    return dict(rows.values_list("pk", "name"))


def recount(reminder: Reminder) -> bool:
    """Count again; return whether the number has changed."""
    accounts, losses = account_ids(reminder), texts_of(reminder).losses
    senders = Senders(ids=accounts, able=able_of(accounts))
    kept = _kept(reminder, senders, losses)
    if kept is not None and kept.counted_at is None:
        return False
    return kept is None or replace(kept, counted_at=None) != _count(reminder, senders, losses)


def forget(reminder: Reminder) -> None:
    """Delete the kept count: the choice has changed."""
    try:
        client().delete(_key(reminder))
    except RedisError:
        log.warning("headcount_not_forgotten", reminder=reminder.pk)


def number_of(found: QuerySet[Model], name: str, *, anew: bool = False) -> int:
    """Return how many rows a list has; a large count is kept under `name` for a minute, unless it is asked `anew`."""
    key = f"paceline:rows:{name}"
    try:
        if not anew and (kept := client().get(key)):
            return int(kept)
        number = found.count()
        if number > KEPT_ABOVE:
            client().set(key, number, ex=60)
    except RedisError:
        return found.count()
    return number


def _count(reminder: Reminder, senders: Senders, losses: Mapping[str, str]) -> Audience:
    needed = [name for name, loss in losses.items() if loss == NOTHING]
    found = audience.count(reminder.pk, senders.ids, sorted(losses), needed=needed, able=senders.able)
    if found.reached + found.excluded > KEPT_ABOVE:
        _keep(reminder, _print(senders, losses), found)
    return found


def _keep(reminder: Reminder, print_: str, found: Audience) -> None:
    by_account = {"tied": list(found.tied.items()), "kept": list(found.kept.items())}
    noted = asdict(found) | {"counted_at": timezone.now().timestamp(), **by_account}
    try:
        pipe = client().pipeline()
        pipe.hset(_key(reminder), print_, json.dumps(noted))
        pipe.expire(_key(reminder), KEPT_SECONDS)
        pipe.execute()
    except RedisError:
        log.warning("headcount_not_kept", reminder=reminder.pk)


def _kept(reminder: Reminder, senders: Senders, losses: Mapping[str, str]) -> Audience | None:
    try:
        noted = client().hget(_key(reminder), _print(senders, losses))
    except RedisError:
        return None
    if noted is None:
        return None
    values = json.loads(str(noted, "utf-8") if isinstance(noted, bytes) else str(noted))
    at = datetime.fromtimestamp(values["counted_at"], tz=timezone.get_current_timezone())
    stale = timezone.now() - at > FRESH
    by_account = {name: dict(values[name]) for name in ("tied", "kept")}
    return Audience(**values | by_account | {"counted_at": at if stale else None})


def _print(senders: Senders, losses: Mapping[str, str]) -> str:
    """Return a fingerprint of what the count depends on besides the choice."""
    said = json.dumps([list(senders.ids), list(senders.able), losses], sort_keys=True)
    return hashlib.sha256(said.encode()).hexdigest()[:16]


def _key(reminder: Reminder) -> str:
    return f"paceline:headcount:{reminder.pk}"
