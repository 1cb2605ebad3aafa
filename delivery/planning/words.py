"""A forecast in words: whether a run fits its window, and what helps where it does not (SPEC S4, S5)."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from activity.components import times
from delivery.planning.values import Pause, PauseCause, Timeline
from delivery.window import Window

FITS = "Fits in window"
PAUSES = "Likely to pause"


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """The facts about a planned run that a forecast is made from."""

    targets: int
    parts: int
    minutes: int
    window: Window
    fires_at: datetime
    closes_at: datetime  # end of the window in which the run starts
    missed: bool  # the run would fire after that day's window
    drip: bool
    resumes_by_itself: bool
    never: str  # why the limits can never allow the message
    errors: float  # the share that is expected to fail, if it is high enough to stop the run
    fitting_end: int | None  # the end hour with which the run would fit on that day
    timeline: Timeline


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """The expected timeline of a run.

    `label` is the pill: green where the run `fits`, else amber. `sentence` tells what will happen, `suggestion` what
    helps where the run does not fit. `minutes` is the rule of thumb, which ignores windows and daily limits.
    """

    targets: int
    parts: int
    minutes: int
    window: Window
    fires_at: datetime
    closes_at: datetime
    timeline: Timeline
    fits: bool
    sentence: str
    suggestion: str = ""

    @property
    def label(self) -> str:
        return FITS if self.fits else PAUSES

    @property
    def finishes_at(self) -> datetime | None:
        return self.timeline.finishes_at


def told(expected: Expected, *, now: datetime) -> Forecast:
    """Return the forecast with its sentences."""
    words = _Words(expected, now)
    fits, sentence, suggestion = words.verdict()
    return Forecast(
        targets=expected.targets,
        parts=expected.parts,
        minutes=expected.minutes,
        window=expected.window,
        fires_at=expected.fires_at,
        closes_at=expected.closes_at,
        timeline=expected.timeline,
        fits=fits,
        sentence=sentence,
        suggestion=suggestion,
    )


class _Words:
    """The sentences about one expected run."""

    def __init__(self, expected: Expected, now: datetime) -> None:
        self.run = expected
        self.timeline = expected.timeline
        self.zone = ZoneInfo(expected.window.zone)
        self.now = now

    def verdict(self) -> tuple[bool, str, str]:
        """Return whether the run fits, what will happen, and what helps."""
        if self.run.targets == 0 and not self.run.never:
            return True, "There are no recipients yet.", ""
        if trouble := self._trouble():
            return False, *trouble
        finishes_at, pause = self.timeline.finishes_at or self.now, self._pause()
        if pause is not None and not self.run.drip:
            return False, *self._pauses(pause, finishes_at)
        if self._with_margin() > self.run.closes_at and not self.run.drip:
            return False, *self._tight(finishes_at)
        return True, self._fits(finishes_at), ""

    def _trouble(self) -> tuple[str, str] | None:
        """Return what would keep the run from finishing and what helps, or None."""
        if self.run.never:
            what, _, remedy = self.run.never.partition(". ")
            return f"{what}.", remedy
        if self.run.missed:
            return self._missed()
        if self.timeline.finishes_at is None:
            return self._endless()
        return self._errors() if self.run.errors else None

    def _pause(self) -> Pause | None:
        """Return the first pause that stops the run; waiting for a turn or for the first window is none."""
        for pause in self.timeline.pauses:
            if pause.cause in {PauseCause.DAILY_CAP, PauseCause.SPAN_CAP} or pause.at >= self.run.closes_at:
                return pause
        return None

    def _with_margin(self) -> datetime:
        """Return when the run would be finished by the rule of thumb (S4)."""
        return (self.timeline.starts_at or self.run.fires_at) + timedelta(minutes=self.run.minutes)

    def _fits(self, finishes_at: datetime) -> str:
        length = self._days(finishes_at) if self.run.drip else self._length(finishes_at)
        return f"{length}, finished about {self._finish(finishes_at)} ({self.zone})."

    def _length(self, finishes_at: datetime) -> str:
        """Return a length such as "About 25 minutes, 29 minutes with a margin"."""
        takes = next_minute(finishes_at) - (self.timeline.starts_at or self.run.fires_at)
        longer = timedelta(minutes=self.run.minutes)
        told, more = times.span(takes), times.span(longer)
        margin = f", {more} with a margin" if longer > takes and more != told else ""
        return f"About {told}{margin}"

    def _days(self, finishes_at: datetime) -> str:
        first, last = (
            at.astimezone(self.zone).date()
            for at in (self.timeline.starts_at or self.run.fires_at, finishes_at)
        )
        days = (last - first).days + 1
        return f"Planned over {days} days" if days > 1 else "Planned for one day"

    def _tight(self, finishes_at: datetime) -> tuple[str, str]:
        """Return the sentences for a run that fits only without any delay."""
        closes, later = self._moment(self.run.closes_at), self._with_margin().astimezone(self.zone)
        what = f"{self._length(finishes_at)}, and the window closes at {closes} ({self.zone}): the run may not finish."
        same_day = later.date() == self.run.fires_at.astimezone(self.zone).date()
        wider = f"Let the window end at {later.hour + 1}:00, or send" if same_day else "Send"
        return what, f"{wider} it earlier."

    def _missed(self) -> tuple[str, str]:
        fires, closes = self._moment(self.run.fires_at), f"{self.run.window.end_hour:02d}:00"
        return (
            f"{fires} ({self.zone}) is after the end of the window ({closes}). Nothing would be sent.",
            f"Send it before {closes}, or widen the window.",
        )

    def _errors(self) -> tuple[str, str]:
        return (
            f"{self.run.errors:.0%} of the account's latest messages failed. A run with so many errors pauses.",
            "Look at the errors on the account's page. Correct or leave out these recipients first.",
        )

    def _endless(self) -> tuple[str, str]:
        done = self.timeline.curve[-1].done if self.timeline.curve else 0
        return (
            f"The run would take more than a year: {done:,} of {self.run.targets:,} would be delivered by then.",
            "Raise the account's limits, add accounts, or choose fewer recipients.",
        )

    def _pauses(self, pause: Pause, finishes_at: datetime) -> tuple[str, str]:
        at, progress = self._moment(pause.at), f"{pause.done:,} of {self.run.targets:,} delivered"
        finish = f"ends about {self._finish(finishes_at)} ({self.zone})"
        if pause.cause in {PauseCause.DAILY_CAP, PauseCause.SPAN_CAP}:
            again = self._after_full_day(pause)
            limit = "daily limit" if pause.cause is PauseCause.DAILY_CAP else "limit of several hours or days"
            what = f"The {limit} is reached at {at} with {progress}. {again} {finish}."
            return what, f"Raise the account's {limit}, or add another account."
        by_itself = self.run.resumes_by_itself
        again = "It continues when the window opens again and" if by_itself else "If you resume it then, it"
        return f"The window closes at {at} with {progress}. {again} {finish}.", self._wider()

    def _after_full_day(self, pause: Pause) -> str:
        same_window = pause.until is not None and pause.until < self.run.closes_at
        if same_window or self.run.resumes_by_itself:
            return "The rest follows on later days and"
        return "If you resume it each day, it"

    def _wider(self) -> str:
        if self.run.fitting_end is None:
            return "Add another account, or split the run into smaller ones."
        return f"Let the window end at {self.run.fitting_end}:00, or split the run into smaller ones."

    def _finish(self, at: datetime) -> str:
        return self._moment(next_minute(at))

    def _moment(self, at: datetime) -> str:
        return times.clock(at.astimezone(self.zone), self.now, weekday=True)


def next_minute(at: datetime) -> datetime:
    """Return `at` rounded up to a full minute."""
    return at + timedelta(seconds=(-at.timestamp()) % 60)
