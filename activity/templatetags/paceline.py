"""The components of the pages, as template tags. /styleguide/ shows each of them."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import cache
from typing import Any, Protocol
from zoneinfo import ZoneInfo

from django import template
from django.forms import BoundField
from django.template import Context
from django.templatetags.static import static
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

from activity import plots, times
from activity.looks import MESSAGE_LOOKS, PAUSE_WORDS, TARGET_LOOKS, WAIT_WORDS, Tone, look_of

register = template.Library()

# Of a bar, from left to right. What is being sent at this moment is still pending to a reader.
PARTS = ("sent", "failed", "skipped", "unconfirmed", "pending")

PLOT_WIDTH, PLOT_HEIGHT = 480, 100
SPARK_WIDTH, SPARK_HEIGHT = 96, 24


class Counts(Protocol):
    """What a progress bar needs; a run has it."""

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
    return f"{number:,}"


@register.filter
def span(length: timedelta) -> str:
    return times.span(length)


@register.filter
def waiting(reason: str) -> str:
    """Why an account is not sending, in a few words."""
    return WAIT_WORDS.get(reason, "")


@register.filter
def pausing(reason: str) -> str:
    """Why a run is paused, in a few words; its summary says the rest."""
    return PAUSE_WORDS.get(reason, "")


@register.filter
def word(state: str) -> str:
    """A state's word alone, as for a tab."""
    return look_of(state).word


@cache
def _sprite() -> str:
    return static("icons/sprite.svg")


@register.simple_tag
def icon(name: str, label: str = "") -> SafeString:
    """A symbol of the sprite; hidden from screen readers unless it has a label of its own."""
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
    """A state as icon, word and colour: {% pill run.status %}."""
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
    """A run's status, which follows it while the page is open: {% run_pill run %}."""
    return _live_pill("run-status", run)


@register.simple_tag
def account_pill(account: Any) -> SafeString:
    """An account's status, in the same way."""
    return _live_pill("account-status", account)


def _live_pill(what: str, row: Any) -> SafeString:
    return format_html('<span data-{}="{}">{}</span>', what, row.pk, pill(row.status))


@register.simple_tag
def badge(text: str, tone: str = Tone.CALM, icon_name: str = "") -> SafeString:
    """A pill for what is not a state, such as a forecast."""
    return format_html(
        '<span class="pill tone-{}">{}{}</span>', tone, icon(icon_name) if icon_name else "", text
    )


@register.inclusion_tag("components/_progress.html")
def progress(counts: Counts, compact: bool = False) -> dict[str, Any]:
    """How far a run is; a run's own goes on by itself while its page is open. Compact is for a row of a table."""
    parts = {name: getattr(counts, name) for name in PARTS}
    parts["pending"] += counts.sending
    # The bar is as long as those who were to get it.
    drawn = plots.segments(parts | {"skipped": counts.skipped - counts.left_out}, counts.expected)
    settled = counts.expected - parts["pending"]
    return {
        "run": getattr(counts, "pk", None),
        "status": getattr(counts, "status", ""),
        "compact": compact,
        "expected": counts.expected,
        "left_out": left_out_words(counts.left_out),
        "sent": counts.sent,
        "percent": settled * 100 // counts.expected if counts.expected else 0,
        "segments": [(part, TARGET_LOOKS[part.name]) for part in drawn if part.name != "pending"],
        "legend": [(name, count, TARGET_LOOKS[name]) for name, count in parts.items()],
        "label": ", ".join(f"{count:,} {name}" for name, count in parts.items() if count) or "no targets",
    }


def left_out_words(count: int) -> str:
    """Beside a run's progress, where some of those chosen were never to get it."""
    return f", {count:,} left out" if count else ""


@register.inclusion_tag("components/_gauge.html")
def gauge(label: str, used: int, limit: int | None) -> dict[str, Any]:
    """How much of a limit is used. A limit of None is no limit."""
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
    """Bars with a hint on each: pairs of a label and a number."""
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
    """A time with its zone; the pointer's rest shows it in the reader's zone and in UTC as well."""
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


@register.inclusion_tag("components/_notice.html")
def notice(level: str, text: str, dismissible: bool = False) -> dict[str, Any]:
    """A message in a box. `level` is one of Django's message levels, as a word."""
    look = MESSAGE_LOOKS.get(level, MESSAGE_LOOKS["info"])
    return {"look": look, "text": text, "dismissible": dismissible, "level": level}


@register.inclusion_tag("components/_field.html")
def field(bound: BoundField, optional: bool = False) -> dict[str, Any]:
    """A form field with its label, its hint and, right below it, its errors."""
    return {
        "field": bound,
        "optional": optional,
        "is_check": getattr(bound.field.widget, "input_type", "") == "checkbox" and not bound.use_fieldset,
    }


SECTIONS = (
    ("dashboard", "dashboard", "Dashboard"),
    ("reminders:list", "reminders", "Reminders"),
    ("recipients:list", "recipients", "Recipients"),
    ("accounts:list", "accounts", "Accounts"),
    ("activity:list", "activity", "Activity"),
)


@register.inclusion_tag("components/_sections.html", takes_context=True)
def sections(context: Context) -> dict[str, Any]:
    """The navigation, with the section of this page marked."""
    match = getattr(context.get("request"), "resolver_match", None)
    here = (match.namespace or match.url_name) if match else ""
    here = {"runs": "reminders", "follow_ups": "activity"}.get(here, here)
    return {"sections": [(url, name, title, name == here) for url, name, title in SECTIONS]}
