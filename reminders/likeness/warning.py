"""Estimates how many people would get nearly the same text from a reminder (SPEC P17)."""

from collections.abc import Mapping, Sequence

from accounts.models import Account, Recipient
from delivery.audience import Audience
from delivery.parts import values_of
from delivery.wordings import draw
from reminders.audience import some_people
from reminders.likeness.measure import largest_group, with_values
from reminders.message import wordings_of
from reminders.models import Part, Reminder

PEOPLE = ("person", "mailbox", "profile")  # the kinds of recipients; not groups and rooms
SAMPLE = 200
MANY = 50  # people with the same text, from which services notice
NEWSLETTER = "email_newsletter"  # its subscribers expect one text for all


def same_text_warning(
    reminder: Reminder, parts: Sequence[Part], accounts: Sequence[Account], reached: Audience
) -> str:
    """Return a warning where many people would get nearly the same text; empty where not, and for groups."""
    people = sum(reached.kinds.get(kind, 0) for kind in PEOPLE)
    if people < MANY or (accounts and all(account.profile == NEWSLETTER for account in accounts)):
        return ""
    wordings = [wordings_of(part) for part in parts if part.role == Part.Role.FIRST and part.text]
    sample = some_people(reminder, SAMPLE, kinds=PEOPLE)
    if not wordings or not sample:
        return ""
    group = largest_group(_text(recipient, wordings) for recipient in sample)
    same = round(people * group / len(sample))
    return _sentence(same, people) if same >= MANY else ""


def _text(recipient: Recipient, wordings: Sequence[Sequence[str]]) -> str:
    key, values = f"sample-{recipient.pk}", values_of(recipient)
    return "\n".join(_drawn(texts, key, number, values) for number, texts in enumerate(wordings))


def _drawn(wordings: Sequence[str], key: str, number: int, values: Mapping[str, object]) -> str:
    return with_values(draw(wordings, key=key, part=number), values)


def _sentence(same: int, people: int) -> str:
    whom = f"All {people:,} people" if same >= people else f"About {same:,} of {people:,} people"
    return (
        f"{whom} would get nearly the same text, which services may take for spam. "
        "Add other wordings, or something that is different for each."
    )
