"""Says in one sentence whether an account sends, why not, and when it continues (SPEC U6). Pure.

Every page, list, admin column and live message calls `tell`. The words are in `reasons.py`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from enum import StrEnum

from activity.components import times
from delivery.sentences.reasons import AFTERWARDS, STOPPED, TROUBLES, WAITS, Words
from delivery.states import AccountStatus, WaitReason

SILENT_AFTER = timedelta(seconds=5)  # a request that takes longer is shown
UNSERVED_AFTER = timedelta(seconds=30)  # a later wake-up means that no worker serves it
TICKS_UP_TO = timedelta(minutes=10)  # a later moment is shown as a time of day


class Mood(StrEnum):
    """The look of a sentence."""

    CALM = "calm"  # stopped on purpose, or nothing to do
    SENDING = "sending"
    WAITING = "waiting"  # for a limit, a window or a plan
    TROUBLE = "trouble"  # something failed, and is tried again


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountNow:
    """The facts about an account at one moment from which its sentence is made."""

    status: AccountStatus
    status_reason: str = ""
    archived: bool = False
    name: str = "this account"
    full_pace_at: datetime | None = None  # when its pace has grown to the full one after it connected again
    server: str = "the gateway"  # the server that gets its requests
    service: str = "WhatsApp"  # the network of its messages
    running: int = 0  # runs
    paused: int = 0
    pace: float = 0.0  # about how many seconds between two messages, before any slow-down; 0 if not known
    slow_factor: float = 1.0
    health_factor: float = 1.0  # more than 1 while it is slowed down for its health
    health_until: datetime | None = None  # when its pause for its health is over
    limits: Mapping[str, int | None] | None = None  # the caps, by their reasons
    waiting_for: str = ""
    waiting_until: datetime | None = None
    waiting_detail: str = ""  # a sentence, if the reason alone is not enough
    trouble_kind: str = ""
    trouble: str = ""
    trouble_since: datetime | None = None
    next_try: datetime | None = None
    asked_at: datetime | None = None  # the oldest request that has no answer yet
    wake_at: datetime | None = None
    redis_answers: bool = True  # checked only if no worker serves the account


@dataclass(frozen=True, slots=True, kw_only=True)
class Why:
    """A sentence, and a clock behind it if there is one: "Next try in 8 s".

    Both begin in lower case, as after a name: "Parents phone: the gateway has not answered for 12 s".
    """

    words: str
    mood: Mood = Mood.CALM
    clock: str = ""  # the words before the clock; they end in "in", or in "for" if the clock counts up
    at: datetime | None = None  # the moment to which, or from which, the clock counts

    @property
    def sentence(self) -> str:
        return _capital(self.words)

    def clock_words(self, *, named: bool = False) -> str:
        """Return the words before the clock; they begin a sentence unless they follow a name."""
        return self.clock if named and not self.words else _capital(self.clock)

    @property
    def counts_up(self) -> bool:
        return self.clock.endswith(" for")

    def seconds(self, now: datetime) -> int:
        """Return the seconds that the clock shows."""
        if self.at is None:
            return 0
        passed = (now - self.at).total_seconds()
        return max(0, round(passed if self.counts_up else -passed))

    def ticks(self, now: datetime) -> bool:
        """Tell whether the clock shows seconds; else the moment itself is shown."""
        return self.at is not None and (self.counts_up or self.at - now <= TICKS_UP_TO)

    def text(self, now: datetime, zone: tzinfo) -> str:
        """Return sentence and clock as plain text."""
        if self.at is None:
            return self.sentence
        told = (
            times.length(self.seconds(now)) if self.ticks(now) else times.clock(self.at.astimezone(zone), now)
        )
        clock = self.clock_words() if self.ticks(now) else self.clock_words().removesuffix(" in")
        return f"{self.sentence} {clock} {told}.".strip()


def tell(account: AccountNow, *, now: datetime, zone: tzinfo) -> Why:
    """Return the sentence for an account: first what stops it, then trouble, then the reason to wait."""
    if account.archived or account.status is not AccountStatus.ACTIVE:
        return _stopped(account, now, zone)
    # A wake-up that was set by a wrong clock says nothing about the workers.
    late = account.wake_at is not None and now - account.wake_at > UNSERVED_AFTER
    if account.running and account.wake_at is not None and late and account.waiting_for != WaitReason.CLOCKS:
        return _unserved(account, account.wake_at, now, zone)
    if account.running and (found := WAITS.get(account.waiting_for)) is not None and found.lasting:
        return Why(words=found.said.format(detail=account.waiting_detail).strip(), mood=Mood.TROUBLE)
    if account.trouble_kind:
        return _troubled(account, now, zone)
    return _at_work(account, now, zone) if account.running else Why(words=_idle(account.paused))


def _at_work(account: AccountNow, now: datetime, zone: tzinfo) -> Why:
    if account.asked_at is not None and now - account.asked_at > SILENT_AFTER:
        words = f"{account.server} has not answered for"
        return Why(words="", mood=Mood.TROUBLE, clock=words, at=account.asked_at)
    over = account.waiting_until is not None and account.waiting_until <= now
    if account.waiting_for == WaitReason.WORKING_HOURS and account.waiting_until and not over:
        begin = times.comes(account.waiting_until, zone, now)
        return Why(words=f"working hours of {account.name} begin {begin}.", mood=Mood.WAITING)
    if account.waiting_for and not over:
        return _waiting(account, now, zone)
    return Why(words=_sending(account, now, zone), mood=Mood.SENDING)


def _capital(words: str) -> str:
    return words[:1].upper() + words[1:]


def _stopped(account: AccountNow, now: datetime, zone: tzinfo) -> Why:
    if account.archived:
        return Why(words="archived. Nothing is sent from this account.")
    # A rate limit is not why an account is offline, and still applies when it is back.
    if account.status is AccountStatus.OFFLINE and account.trouble_kind not in {"", "rate_limited"}:
        return _troubled(account, now, zone)
    reason = (account.status_reason or account.trouble).rstrip(".")  # some services send a sentence
    if account.status is AccountStatus.PAUSED and reason:
        over = account.health_until
        clock = "continues in" if over is not None and over > now else ""
        return Why(
            words=f"{reason}.", clock=clock, at=over if clock else None
        )  # it names the person or the figure
    mood = Mood.TROUBLE if account.status in {AccountStatus.OFFLINE, AccountStatus.FLAGGED} else Mood.CALM
    said = STOPPED[account.status]
    words = f"{said}: {reason}." if reason else f"{said}."
    return Why(words=f"{words} {AFTERWARDS.get(account.status, '')}".rstrip(), mood=mood)


def _idle(paused: int) -> str:
    if not paused:
        return "ready. Nothing to send."
    return "1 run is paused." if paused == 1 else f"{paused} runs are paused."


def _unserved(account: AccountNow, since: datetime, now: datetime, zone: tzinfo) -> Why:
    """Return the sentence when no worker came to serve the account: our own servers are in trouble, not its gateway."""
    if not account.redis_answers:
        return Why(words=WAITS[WaitReason.LIMITER_AWAY].said, mood=Mood.TROUBLE)
    asked = times.clock(since.astimezone(zone), now)
    return Why(
        words=f"no worker serves this account since {asked}. Check that the workers run.", mood=Mood.TROUBLE
    )


def _troubled(account: AccountNow, now: datetime, zone: tzinfo) -> Why:
    since = times.clock((account.trouble_since or now).astimezone(zone), now)
    words = TROUBLES[account.trouble_kind].format(server=account.server, service=account.service, since=since)
    cause = account.trouble.strip().rstrip(".")
    words = f"{words} ({cause})." if cause else f"{words}."
    if account.next_try is not None and account.next_try > now:
        return Why(words=words, mood=Mood.TROUBLE, clock="next try in", at=account.next_try)
    if account.asked_at is not None:
        return Why(words=words, mood=Mood.TROUBLE, clock="trying again for", at=account.asked_at)
    asked = account.status is AccountStatus.OFFLINE  # then the service is asked; no message tries it
    again = "Trying again now." if account.running or asked else "The next message tries again."
    return Why(words=f"{words} {again}", mood=Mood.TROUBLE)


def reason_of(waiting_for: str, *, server: str = "the service", limit: int | None = None) -> str:
    """Return the words for a reason to wait."""
    words = WAITS.get(waiting_for, Words(said="waiting."))
    said = words.said if limit else words.uncounted or words.said
    return said.format(server=server, limit=f"{limit or 0:,}", detail="the clocks of the servers disagree.")


def _waiting(account: AccountNow, now: datetime, zone: tzinfo) -> Why:
    found = WAITS.get(account.waiting_for, Words(said="waiting."))
    limit = (account.limits or {}).get(account.waiting_for)
    words = reason_of(account.waiting_for, server=account.server, limit=limit)
    if account.waiting_for == WaitReason.GAP:
        words = _slowed(account, now, zone) if account.waiting_until else _sending(account, now, zone)
    mood = Mood.SENDING if account.waiting_for == WaitReason.GAP else Mood.WAITING
    clock = found.clock if account.waiting_until else ""
    return Why(words=words, mood=mood, clock=clock, at=account.waiting_until)


def _sending(account: AccountNow, now: datetime, zone: tzinfo) -> str:
    if not account.pace:
        return f"sending. {_slowed(account, now, zone)}".strip()
    seconds = account.pace * account.slow_factor * account.health_factor
    pace = times.length(round(seconds)) if seconds >= 10 else f"{seconds:.2g} s"
    return f"sending, about one message every {pace}. {_slowed(account, now, zone)}".strip()


def _slowed(account: AccountNow, now: datetime, zone: tzinfo) -> str:
    told = []
    if account.full_pace_at is not None and account.full_pace_at > now:
        full = times.clock(account.full_pace_at.astimezone(zone), now)
        told.append(f"It connected again a short time ago: its pace grows to the full one until {full}.")
    if account.slow_factor > 1:
        told.append(f"Sending {account.slow_factor:.2g} times slower after a warning from the service.")
    if account.health_factor > 1:
        told.append(
            f"Sending {account.health_factor:.2g} times slower, because too many of its messages failed or came back."
        )
    return " ".join(told)
