"""The components of the pages, as template tags. /styleguide/ shows each of them."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import cache
from typing import Any, Protocol
from zoneinfo import ZoneInfo

from django import template
from django.forms import BoundField
from django.template import Context
from django.template.loader import render_to_string
from django.templatetags.static import static
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from activity.components import plots, times
from activity.components.looks import MESSAGE_LOOKS, MOOD_ICONS, TARGET_LOOKS, Tone, look_of

register = template.Library()

# The parts of a bar, from left to right. To a reader, messages that are being sent are still pending.
PARTS = ("sent", "failed", "skipped", "unconfirmed", "pending")

PLOT_WIDTH, PLOT_HEIGHT = 480, 100
SPARK_WIDTH, SPARK_HEIGHT = 96, 24


class Counts(Protocol):
    """The counts that a progress bar needs; a run has them."""

    left_out: int
    sent: int
    failed: int
    skipped: int
    unconfirmed: int
    sending: int
    pending: int

    @property
    def expected(self) -> int: ...


@register.filter
def thousands(number: int) -> str:
    """Return a number with its thousands apart; one that was not counted to the end says so itself."""
    return f"{number:,}" if type(number) is int else str(number)


@register.filter
def span(length: timedelta) -> str:
    return times.span(length)


@register.filter
def braced(name: str) -> str:
    """Return the name of a variable as it stands in a message: {{ name }}."""
    return f"{{{{ {name} }}}}"


@register.filter
def at(values: Mapping[Any, Any], key: Any) -> Any:
    """Return the value of a mapping under a key, or None."""
    return values.get(key)


@register.filter
def word(state: str) -> str:
    """Return only the word of a state, as for a tab."""
    return look_of(state).word


@cache
def _sprite() -> str:
    return static("icons/sprite.svg")


@register.simple_tag
def icon(name: str, label: str = "") -> SafeString:
    """Return a symbol of the sprite, hidden from screen readers unless it has a label."""
    if label:
        return format_html(
            '<svg class="icon" role="img" aria-label="{}"><use href="{}#{}"></use></svg>',
            label,
            _sprite(),
            name,
        )
    return format_html('<svg class="icon" aria-hidden="true"><use href="{}#{}"></use></svg>', _sprite(), name)


@register.simple_tag
def pill(state: str) -> SafeString:
    """Return a state as icon, word and colour: {% pill run.status %}."""
    look = look_of(state)
    return format_html(
        '<span class="pill pill-{} tone-{}">{}{}</span>',
        state.replace("_", "-"),
        look.tone,
        icon(look.icon),
        look.word,
    )


@register.simple_tag
def run_pill(run: Any) -> SafeString:
    """Return a run's status, which is updated while the page is open: {% run_pill run %}."""
    return _live_pill("run-status", run.pk, run.shown_status)


@register.simple_tag
def account_pill(account: Any) -> SafeString:
    """Return an account's status, which is updated while the page is open."""
    return _live_pill("account-status", account.pk, account.status)


def _live_pill(what: str, pk: int, status: str) -> SafeString:
    return format_html('<span data-{}="{}">{}</span>', what, pk, pill(status))


@register.simple_tag
def badge(text: str, tone: str = Tone.CALM, icon_name: str = "") -> SafeString:
    """Return a pill for something that is not a state, such as a forecast."""
    return format_html(
        '<span class="pill tone-{}">{}{}</span>', tone, icon(icon_name) if icon_name else "", text
    )


@register.inclusion_tag("components/_progress.html")
def progress(counts: Counts, compact: bool = False) -> dict[str, Any]:
    """Return the progress of a run, which is updated while the page is open. `compact` is for a row of a table."""
    parts = {name: getattr(counts, name) for name in PARTS}
    parts["pending"] += counts.sending
    # The full bar stands for everybody who should get it.
    drawn = plots.segments(parts | {"skipped": counts.skipped - counts.left_out}, counts.expected)
    settled = counts.expected - parts["pending"]
    return {
        "run": getattr(counts, "pk", None),
        "status": getattr(counts, "shown_status", ""),
        "compact": compact,
        "expected": counts.expected,
        "left_out": left_out_words(counts.left_out),
        "sent": counts.sent,
        "percent": settled * 100 // counts.expected if counts.expected else 0,
        "segments": [(part, TARGET_LOOKS[part.name]) for part in drawn if part.name != "pending"],
        "legend": [(*each, TARGET_LOOKS[each[0]]) for each in _legend(counts)],
        "label": ", ".join(f"{count:,} {name}" for name, count in parts.items() if count) or "no targets",
    }


def _legend(counts: Counts) -> list[tuple[str, int, str]]:
    """Return each status with its number, as the tabs of a run have them, and the name of its text when it changes."""
    names = ("sent", "failed", "skipped", "unconfirmed", "sending", "pending")
    return [(name, getattr(counts, name), "waiting" if name == "pending" else name) for name in names]


def left_out_words(count: int) -> str:
    """Return the words beside a run's progress when some of the chosen recipients were left out."""
    return f", {count:,} left out" if count else ""


@register.inclusion_tag("components/_gauge.html")
def gauge(label: str, used: int, limit: int | None) -> dict[str, Any]:
    """Return how much of a limit is used. None means no limit."""
    share = used / limit if limit else 0.0
    return {
        "label": label,
        "used": used,
        "limit": limit,
        "width": min(share, 1.0) * plots.BAR_WIDTH,
        "tone": Tone.BAD if share >= 1 else Tone.WARN if share >= 0.8 else Tone.BUSY,
        "percent": round(share * 100),
    }


@register.inclusion_tag("components/_spark.html")
def sparkline(values: Sequence[float], label: str) -> dict[str, Any]:
    drawn = plots.spark(values, width=SPARK_WIDTH, height=SPARK_HEIGHT)
    return {"spark": drawn, "label": label, "width": SPARK_WIDTH, "height": SPARK_HEIGHT}


@register.inclusion_tag("components/_plot.html")
def barplot(values: Sequence[tuple[str, int]], caption: str, unit: str) -> dict[str, Any]:
    """Return bars with a hint on each: pairs of a label and a number."""
    peak = max((value for _, value in values), default=0)
    return {
        "columns": plots.columns(values, width=PLOT_WIDTH, height=PLOT_HEIGHT),
        "caption": caption,
        "unit": unit,
        "peak": peak,
        "axis": [values[i][0] for i in (0, len(values) // 2, -1)] if values else [],
        "width": PLOT_WIDTH,
        "height": PLOT_HEIGHT,
    }


@register.simple_tag
def moment(value: datetime | None, zone: str = "") -> SafeString:
    """Return a time with its zone; pointing at it shows it in the reader's zone and in UTC as well."""
    if value is None:
        return format_html('<span class="quiet" title="{}">{}</span>', "No time", "\N{EN DASH}")
    home = timezone.get_current_timezone()
    shown_in = ZoneInfo(zone) if zone else home
    shown = value.astimezone(shown_in)
    return format_html(
        '<time datetime="{}" title="{}">{} <small class="zone">{}</small></time>',
        value.isoformat(),
        times.in_zones(value, shown_in, home, ZoneInfo("UTC")),
        times.short(shown, timezone.now()),
        times.zone_label(shown),
    )


@register.simple_tag
def why(told: Any, zone: str = "", name: str = "") -> SafeString:
    """Return a sentence of `delivery.sentences.account_sentence`; static/js/countdown.js updates its countdown.

    After a `name` the sentence begins in lower case: "Parents phone: no answer from the gateway".
    """
    now = timezone.now()
    first = f"{name}: {told.words}" if name else told.sentence
    if told.at is None:
        return format_html("{}", first)
    clock = told.clock_words(named=bool(name))
    if not told.ticks(now):
        return format_html("{} {} {}.", first, clock.removesuffix(" in"), moment(told.at, zone))
    seconds, attribute = told.seconds(now), "data-countup" if told.counts_up else "data-countdown"
    ticking = format_html('<b class="num" {}="{}">{}</b>', attribute, seconds, times.length(seconds))
    return format_html("{} {} {}.", first, clock, ticking)


@register.filter
def mood_icon(mood: str) -> str:
    """Return the symbol before a sentence of `delivery.sentences.account_sentence`."""
    return MOOD_ICONS.get(mood, "info")


@register.inclusion_tag("components/_notice.html")
def notice(level: str, text: str, dismissible: bool = False) -> dict[str, Any]:
    """Return a message in a box. `level` is one of Django's message levels, as a word."""
    look = MESSAGE_LOOKS.get(level, MESSAGE_LOOKS["info"])
    return {"look": look, "text": text, "dismissible": dismissible, "level": level}


@register.simple_block_tag
def empty(content: str, icon_name: str, title: str, *, action: str = "", url: str = "") -> SafeString:
    """Return what a list without rows shows: a title, the reason (the content) and, if given, what to do next."""
    values = {"icon_name": icon_name, "title": title, "content": content, "action": action, "url": url}
    return render_to_string("components/_empty.html", values)


@register.simple_tag
def variables(names: Iterable[str]) -> SafeString:
    """Return the names of variables as they stand in a message, separated by commas."""
    return format_html_join(", ", "<code>{}</code>", ((braced(name),) for name in names))


@register.simple_tag
def pieces(message: Sequence[Any]) -> SafeString:
    """Return the pieces of a message: filled-in values stand out, and missing ones are marked."""
    return format_html_join("", "{}", ((_piece(piece),) for piece in message))


def _piece(piece: Any) -> SafeString:
    if piece.options:
        options = format_html_join(" / ", "{}", ((pieces(option) or "nothing",) for option in piece.options))
        return format_html(
            '<span class="choice-of-words" title="Each recipient gets one of these">{}</span>', options
        )
    if piece.missing:
        return format_html('<mark title="No value for this recipient">{}</mark>', piece.text)
    return format_html("<b>{}</b>" if piece.filled else "{}", piece.text)


@register.inclusion_tag("components/_field.html")
def field(bound: BoundField, optional: bool = False) -> dict[str, Any]:
    """Return a form field with its label, its hint and its errors right below it."""
    return {
        "field": bound,
        "optional": optional,
        "is_check": getattr(bound.field.widget, "input_type", "") == "checkbox" and not bound.use_fieldset,
    }


SECTIONS = (
    ("dashboard", "dashboard", "Dashboard"),
    ("reminders:list", "reminders", "Reminders"),
    ("queues:list", "inbox", "Queues"),
    ("recipients:list", "recipients", "Recipients"),
    ("accounts:list", "accounts", "Accounts"),
    ("activity:list", "activity", "Activity"),
)


@register.inclusion_tag("components/_sections.html", takes_context=True)
def sections(context: Context) -> dict[str, Any]:
    """Return the navigation, with the section of this page marked."""
    match = getattr(context.get("request"), "resolver_match", None)
    here = (match.namespace or match.url_name) if match else ""
    here = {"sources": "queues", "runs": "reminders", "calendar": "reminders", "follow_ups": "activity"}.get(
        here, here
    )
    return {"sections": [(url, name, title, url.partition(":")[0] == here) for url, name, title in SECTIONS]}
