"""The health of one account on its page: its figures, its last days and its history."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from accounts.models import Account, HealthChange
from activity.components import plots
from activity.components.looks import Tone
from delivery.health import counts, judge, words
from delivery.health.rules import AT_LEAST, Health, Level, Tally

SHOWN = 5  # changes
TONES = {
    Level.UNKNOWN: Tone.CALM,
    Level.GOOD: Tone.GOOD,
    Level.NEAR: Tone.WARN,
    Level.SLOW: Tone.BAD,
    Level.PAUSE: Tone.BAD,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """One line of the card: a share in words, and its limit if it has one."""

    label: str
    value: str
    limit: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Day:
    """One day of the plot."""

    label: str
    tally: Tally
    column: plots.Column  # of the messages that failed or came back


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """The part of a page that shows an account's health."""

    word: str
    tone: Tone
    sentence: str
    shares: Sequence[Share]
    days: Sequence[Day]
    changes: Sequence[HealthChange]
    lifts: bool  # whether a person can lift something


def card(account: Account, *, now: datetime, width: float, height: float) -> Card:
    tally = counts.tallies([account], now=now).get(account.pk, Tally())
    health = judge.health_of(account, tally)
    return Card(
        word=_word(account, health),
        tone=Tone.BAD if account.health else TONES[health.level],
        sentence=_sentence(account, health),
        shares=_shares(tally, health),
        days=_days(account, now, width=width, height=height),
        changes=list(account.health_changes.select_related("by")[:SHOWN]),
        lifts=account.health != Account.Health.GOOD,
    )


def badges(accounts: Sequence[Account], *, now: datetime) -> dict[int, tuple[str, Tone]]:
    """Return a word and a tone for each account whose health a list has to show, in one query."""
    found = {}
    for account, health in judge.judge(accounts, now=now):
        if account.health or health.level in {Level.NEAR, Level.SLOW, Level.PAUSE}:
            found[account.pk] = (f"Health: {_word(account, health).lower()}", TONES[health.level])
    return found


def _word(account: Account, health: Health) -> str:
    return account.get_health_display() if account.health else words.WORDS[health.level]


def _sentence(account: Account, health: Health) -> str:
    if account.health == Account.Health.PAUSED:
        return f"Nothing is sent. {account.health_reason}"
    if account.health == Account.Health.SLOW:
        return f"It sends more slowly. {account.health_reason}"
    if health.level is Level.UNKNOWN:
        return f"Its health is known after {AT_LEAST} messages within 7 days."
    if health.level is Level.GOOD:
        return "Few of its messages fail or come back."
    return words.why(account, health)


def _shares(tally: Tally, health: Health) -> list[Share]:
    lost, complained = health.figures
    return [
        Share(label="Messages in 7 days", value=f"{tally.sent:,}", limit="counted after some minutes"),
        _share("Failed or came back", lost.count, lost.of, lost.threshold),
        _share("Reported as unwanted", complained.count, complained.of, complained.threshold),
        _share("Answered", tally.replies, tally.sent),
        _share("Opted out", tally.opt_outs, tally.sent),
    ]


def _share(label: str, count: int, of: int, limit: float | None = None) -> Share:
    """Return a line of the card. Reports are counted at once, messages later: until then there is no share."""
    most = f"healthy up to {words.percent(limit)}" if limit is not None else ""
    share = f" ({words.percent(count / of)})" if of else ""
    return Share(label=label, value=f"{count:,}{share}", limit=most)


def _days(account: Account, now: datetime, *, width: float, height: float) -> list[Day]:
    found = counts.days_of(account, now=now)
    bars = plots.columns(
        [(f"{day:%a}", tally.failed + tally.returned) for day, tally in found.items()],
        width=width,
        height=height,
    )
    return [
        Day(label=f"{day:%a %d %b}", tally=tally, column=bar)
        for (day, tally), bar in zip(found.items(), bars, strict=True)
    ]
