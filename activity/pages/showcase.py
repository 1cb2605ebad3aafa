"""The contents of the style page: sample data for every component. Nothing here touches the database."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import segno
from django import forms

from activity.components import looks
from activity.components.plots import climb
from delivery.sentences.account_sentence import Mood, Why
from reminders.pages.wizard.checklist import Point
from reminders.pages.wizard.forecast_plot import ForecastPlot
from reminders.preview import Bubble, Piece

# The parts of the style page, in their order: templates/activity/style/ has a template for each.
PARTS = (
    ("colours", "Colours"),
    ("type", "Type"),
    ("pills", "Pills"),
    ("sentences", "Sentences"),
    ("buttons", "Buttons"),
    ("progress", "Progress and limits"),
    ("banner", "Banners"),
    ("tiles", "Tiles"),
    ("plots", "Plots"),
    ("tables", "Tables"),
    ("rows", "Cards and rows"),
    ("forms", "Forms"),
    ("choices", "Choices"),
    ("question", "Question"),
    ("checklist", "Checklist"),
    ("message", "Message"),
    ("notices", "Notices"),
    ("empty", "Empty lists"),
    ("steps", "Steps"),
    ("frames", "Frames"),
    ("times", "Times"),
)

NIGHT = (0,) * 6
SENDS_PER_HOUR = (*NIGHT, 120, 240, 312, 298, 240, 180, 96, 210, 260, 240, 150, 40, *NIGHT)

EIGHT = datetime(2026, 11, 20, 8, 0, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleRun:
    """A sample with the fields of a run that templates read."""

    name: str
    status: str
    total: int
    sent: int = 0
    failed: int = 0
    skipped: int = 0
    unconfirmed: int = 0
    sending: int = 0
    pending: int = 0
    left_out: int = 0
    summary: str = ""
    pause_reason: str = ""

    @property
    def expected(self) -> int:
        return self.total - self.left_out


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleStep:
    """A sample with the fields of a step that templates read."""

    title: str
    url: str = ""
    done: bool = False
    current: bool = False


class SampleForm(forms.Form):
    """A form with every kind of field."""

    name = forms.CharField(
        label="Name", help_text="Only you and your team see it.", initial="Weekly stand-up"
    )
    window_end_hour = forms.IntegerField(label="Ends at hour", max_value=24, help_text="From 1 to 24.")
    zone = forms.ChoiceField(
        label="Time zone", choices=[(z, z) for z in ("Europe/Berlin", "Asia/Kuala_Lumpur")]
    )
    text = forms.CharField(label="Message", widget=forms.Textarea(attrs={"rows": 3}), required=False)
    on_close = forms.ChoiceField(
        label="When the window closes",
        choices=[("wait", "Pause and ask me"), ("resume", "Continue automatically")],
        widget=forms.RadioSelect,
        initial="wait",
    )
    drip = forms.BooleanField(label="Plan a time for every target", required=False, initial=True)


PAUSED = SampleRun(
    name="Weekly stand-up",
    status="paused",
    total=1000,
    sent=640,
    failed=12,
    pending=348,
    pause_reason="window_closed",
    summary=(
        "The window closed at 18:00 Europe/Berlin with 348 groups pending. The rate of 40 per minute held it back: "
        "start earlier, or widen the window by 10 minutes."
    ),
)

RUNS = (
    SampleRun(
        name="Rent is due",
        status="running",
        total=1000,
        sent=412,
        failed=8,
        unconfirmed=3,
        sending=3,
        pending=574,
    ),
    PAUSED,
    SampleRun(
        name="Choir practice moved to the small hall",
        status="partial",
        total=240,
        sent=231,
        failed=4,
        skipped=5,
        left_out=5,
    ),
    SampleRun(name="Invoice follow-up", status="success", total=20, sent=20),
    SampleRun(name="Summer timetable", status="queued", total=1_000_000, pending=1_000_000),
)

STEPS = (
    SampleStep(title="Message", url="#steps", done=True),
    SampleStep(title="Recipients", url="#steps", current=True),
    SampleStep(title="When"),
    SampleStep(title="Review"),
)


SENTENCES = (
    Why(words="sending, about one message every 1.5 s.", mood=Mood.SENDING),
    Why(words="limit reached: 40 messages per minute.", mood=Mood.WAITING, clock="continues in", at=EIGHT),
    Why(
        words="connection refused, 127.0.0.1:3000.",
        mood=Mood.TROUBLE,
        clock="next try in",
        at=EIGHT + timedelta(hours=9),
    ),
    Why(words="ready. Nothing to send."),
)

POINTS = (
    Point(title="Message", facts=["1 part, 64 letters"], url="#checklist"),
    Point(
        title="Recipients",
        facts=["998 groups get it", "2 excluded: 2 opted out"],
        url="#checklist",
        warnings=["30 groups have no value for “name”."],
    ),
    Point(
        title="When",
        facts=[],
        url="#checklist",
        problems=["This time is in the past (UTC). Choose a later one."],
    ),
)

SUBJECT = (Piece(text="News for "), Piece(text="Maria", filled=True))
BUBBLES = (
    Bubble(
        pieces=(Piece(text="Dear "), Piece(text="Maria", filled=True), Piece(text=", rent is due on Friday."))
    ),
    Bubble(pieces=(Piece(text="Your flat: "), Piece(text="{{ flat }}", missing=True))),
)
ANSWERS = (Bubble(pieces=(Piece(text="Thank you!"),)),)

FORECAST = {"fits": True, "sentence": "Starts at 08:00 and is finished about 08:29."}
PLOT = ForecastPlot(
    climb=climb(
        [(0, 0), (20, 600), (29, 1000), (60, 1000)], [(0, 60)], start=0, end=60, width=720, height=160
    ),
    width=720,
    height=160,
    starts="08:00",
    middle="08:30",
    ends="09:00",
    most=1000,
)


def showcase() -> dict[str, object]:
    """Return the context of the style page."""
    wrong = {
        "wrong-name": "",
        "wrong-window_end_hour": "30",
        "wrong-zone": "Europe/Berlin",
        "wrong-text": "Kept.",
    }
    return {
        "parts": PARTS,
        "pills": {
            "Runs": list(looks.RUN_LOOKS),
            "Run targets": list(looks.TARGET_LOOKS),
            "Accounts": list(looks.ACCOUNT_LOOKS),
            "Reminders": list(looks.REMINDER_LOOKS),
            "Recipients": list(looks.RECIPIENT_LOOKS),
            "Attempts": list(looks.OUTCOME_LOOKS),
        },
        "tones": list(looks.Tone),
        "levels": [level for level in looks.MESSAGE_LOOKS if level != "debug"],
        "paused": PAUSED,
        "runs": RUNS,
        "steps": STEPS,
        "form": SampleForm(),
        "wrong_form": SampleForm(wrong, prefix="wrong"),
        "hours": [(f"{hour:02}:00", sent) for hour, sent in enumerate(SENDS_PER_HOUR)],
        "rates": [31, 34, 33, 36, 38, 37, 39, 40, 38, 40, 40, 39],
        "a_moment": EIGHT,
        "sentences": SENTENCES,
        "points": POINTS,
        "subject": SUBJECT,
        "bubbles": BUBBLES,
        "answers": ANSWERS,
        "missing": ("flat", "floor"),
        "forecast": FORECAST,
        "plot": PLOT,
        "qr": segno.make_qr("paceline:sample").svg_data_uri(border=0, dark="#15171c"),
    }
