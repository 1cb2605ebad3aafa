"""The meanings of a file's columns: guessed from their titles, and corrected by a person."""

import re
from collections.abc import Sequence
from typing import Any

from accounts.imports.columns import variable_name

OWN_ID, ADDRESS, NAME, SUBJECT, TEXT = "own_id", "address", "name", "subject", "text"
PLANNED, SENDER, PRIORITY, VARIABLE, IGNORE = "planned_at", "sender", "priority", "variable", ""

MEANINGS = [
    (IGNORE, "Ignore"),
    (ADDRESS, "Recipient's address"),
    (NAME, "Recipient's name"),
    (SUBJECT, "Subject"),
    (TEXT, "Text"),
    (PLANNED, "Planned time"),
    (SENDER, "Sender (account)"),
    (PRIORITY, "Priority"),
    (OWN_ID, "Own id"),
    (VARIABLE, "Variable"),
]
ONCE = tuple(what for what, _ in MEANINGS if what not in {IGNORE, VARIABLE})

TITLES = {
    OWN_ID: r"(own |row |message |item |external )?id|key|no\.?|number of item",
    ADDRESS: r"to|address|recipient('s address)?|e-?mail( address)?|mail|phone( number)?|mobile|whatsapp|"
    r"(group|chat|room) ?id|linkedin( url| profile)?|profile|matrix( id)?",
    NAME: r"name|full name|contact|recipient name",
    SUBJECT: r"subject|title|betreff|asunto|objet",
    TEXT: r"text|body|message|content|nachricht|mensaje",
    PLANNED: r"planned( send)?( at| for)?|send( at| time)|scheduled( at| for)?|when|date|not before|time",
    SENDER: r"sender( account)?|from|account|mailbox",
    PRIORITY: r"priority|urgency",
}


def guess(titles: Sequence[str]) -> list[dict[str, Any]]:
    """Return the columns with the meanings that their titles suggest; each meaning once, the others as variables."""
    found: list[dict[str, Any]] = []
    taken = set[str]()
    for title in titles:
        means = next((what for what in TITLES if what not in taken and _fits(what, title)), "")
        taken.add(means)
        variable = "" if means else variable_name(title)
        found.append(
            {"title": title[:100], "means": means or (VARIABLE if variable else IGNORE), "variable": variable}
        )
    return found


def is_header(row: Sequence[str]) -> bool:
    """Decide whether the first row has titles: at least two of them are known."""
    return sum(any(_fits(what, title) for what in TITLES) for title in row) > 1


def _fits(what: str, title: str) -> bool:
    return re.fullmatch(TITLES[what], title.strip().replace("_", " "), re.IGNORECASE) is not None
