"""What the style page shows: made-up data for every component. Nothing here touches the database."""

from dataclasses import dataclass
from datetime import UTC, datetime

import segno
from django import forms

from activity.components import looks

SENDS_PER_HOUR = (
    0,
    0,
    0,
    0,
    0,
    0,
    120,
    240,
    312,
    298,
    240,
    180,
    96,
    210,
    260,
    240,
    150,
    40,
    0,
    0,
    0,
    0,
    0,
    0,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleRun:
    """Looks to a template like a run."""

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
    """Looks to a template like a step of the wizard."""

    title: str
    url: str = ""
    done: bool = False
    current: bool = False


class SampleForm(forms.Form):
    """Every kind of field, the second one filled in wrongly."""

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


def showcase() -> dict[str, object]:
    """The context of the style page."""
    wrong = {
        "wrong-name": "",
        "wrong-window_end_hour": "30",
        "wrong-zone": "Europe/Berlin",
        "wrong-text": "Kept.",
    }
    return {
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
        "a_moment": datetime(2026, 11, 20, 8, 0, tzinfo=UTC),
        "qr": segno.make_qr("paceline:sample").svg_data_uri(border=0, dark="#15171c"),
    }
