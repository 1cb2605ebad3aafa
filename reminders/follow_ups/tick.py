"""What beat does for follow-ups: a short pass every half minute, and hygiene every 15 minutes."""

from reminders.follow_ups import entry, hygiene, sending


def tick() -> None:
    """Count what landed before anything enters or leaves: what is decided then is decided by what is known."""
    hygiene.end_cooldowns()
    while sending.settle() == sending.BATCH:
        pass
    entry.enter()
    sending.send_due()


def clean() -> None:
    hygiene.end_cooldowns()
    hygiene.clean()
    hygiene.take_back()
