"""Every state has an icon, a word and a tone, and the icons are really in the sprite."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

from accounts.models import Account
from activity.components.looks import (
    ACCOUNT_LOOKS,
    MESSAGE_LOOKS,
    MOOD_ICONS,
    OUTCOME_LOOKS,
    RECIPIENT_LOOKS,
    REMINDER_LOOKS,
    RUN_LOOKS,
    TARGET_LOOKS,
    Look,
    Tone,
    look_of,
)
from activity.models import Attempt
from activity.templatetags.paceline import SECTIONS, icon, pill
from delivery.sentences.account_sentence import Mood
from delivery.sentences.reasons import PAUSES
from delivery.states import AccountStatus, PauseReason, RunStatus, TargetStatus
from reminders.models import Reminder

ROOT = Path(__file__).resolve().parents[3]
SYMBOLS = set(re.findall(r'<symbol id="([\w-]+)"', (ROOT / "static/icons/sprite.svg").read_text()))
ALL_LOOKS = [
    look
    for table in (
        RUN_LOOKS,
        TARGET_LOOKS,
        ACCOUNT_LOOKS,
        REMINDER_LOOKS,
        RECIPIENT_LOOKS,
        OUTCOME_LOOKS,
        MESSAGE_LOOKS,
    )
    for look in table.values()
]


@pytest.mark.parametrize(
    ("states", "looks"),
    [
        (RunStatus, RUN_LOOKS),
        (TargetStatus, TARGET_LOOKS),
        (AccountStatus, ACCOUNT_LOOKS),
        (Account.Status, ACCOUNT_LOOKS),
        (Reminder.Status, REMINDER_LOOKS),
        (Attempt.Outcome, OUTCOME_LOOKS),
        (Mood, MOOD_ICONS),
        (PauseReason, PAUSES),
    ],
)
def test_every_state_has_its_look(states: Iterable[str], looks: Mapping[str, object]) -> None:
    assert {str(state) for state in states} <= set(looks)


@pytest.mark.parametrize("look", ALL_LOOKS, ids=lambda look: look.word)
def test_a_look_is_an_icon_of_the_sprite_a_word_and_a_tone_of_the_tokens(look: Look) -> None:
    assert look.icon in SYMBOLS
    assert look.word
    assert f".tone-{look.tone} {{" in (ROOT / "static/css/tokens.css").read_text()


def test_states_of_one_kind_can_be_told_apart_without_colour() -> None:
    for table in (RUN_LOOKS, TARGET_LOOKS, ACCOUNT_LOOKS):
        assert len({(look.icon, look.word) for look in table.values()}) == len(table)


def test_the_templates_use_only_icons_that_exist() -> None:
    templates = [path.read_text() for path in (ROOT / "templates").rglob("*.html")]
    used = {name for text in templates for name in re.findall(r'(?:{% icon |icon_name=)"([\w-]+)"', text)}
    assert used | {name for _, name, _ in SECTIONS} <= SYMBOLS


def test_a_state_that_nobody_drew_still_says_its_word() -> None:
    assert look_of("half_done") == Look("help", "Half done", Tone.CALM)


def test_a_pill_carries_icon_word_and_tone() -> None:
    drawn = pill("paused")
    assert "#paused" in drawn
    assert "Paused" in drawn
    assert "tone-warn" in drawn


def test_a_pill_escapes_what_it_is_given() -> None:
    assert "<b>" not in pill("<b>")


def test_an_icon_is_hidden_from_screen_readers_unless_it_has_a_label() -> None:
    assert 'aria-hidden="true"' in icon("bell")
    assert 'aria-label="News"' in icon("bell", "News")
