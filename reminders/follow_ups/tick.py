"""The periodic work of follow-ups: a short pass every half minute, and hygiene every 15 minutes."""

from reminders.follow_ups import entry, hygiene, sending


def tick() -> None:
    """Count landed follow-ups before any enter or leave, so that those decisions use the newest facts."""
    hygiene.end_cooldowns()
    while sending.settle() == sending.BATCH:
        pass
    entry.enter()
    sending.send_due()


def clean() -> None:
    hygiene.end_cooldowns()
    hygiene.clean()
    hygiene.take_back()
