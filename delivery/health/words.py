"""The sentences about an account's health: the figure that decides it, and a remedy."""

from accounts.models import Account
from accounts.models.account import Channel
from delivery.health.rules import DAYS, Figure, Health, Level

SAID = {
    "lost": "{count} of {of} messages failed or came back in the last {days} days ({share}; healthy is up to {most})",
    "complained": "{count} of {of} messages were reported as unwanted in the last {days} days "
    "({share}; healthy is up to {most})",
}
REMEDIES = {
    ("lost", Channel.EMAIL): "Remove old addresses from your list, and write only to people who expect it.",
    ("lost", Channel.WHATSAPP): "Check the numbers, and write to people who know you first.",
    ("lost", Channel.LINKEDIN): "Check the profiles, and send fewer messages to people who do not know you.",
    (
        "complained",
        Channel.EMAIL,
    ): "Write less often, only to people who asked for it, and make leaving easy.",
}
REMEDY = "Check the recipients, and write only to people who expect it."
WORDS = {
    Level.UNKNOWN: "Too few messages to tell",
    Level.GOOD: "Good",
    Level.NEAR: "Near its limit",
    Level.SLOW: "Bad",
    Level.PAUSE: "Very bad",
}


def percent(share: float) -> str:
    """Return a share as 4.2%, and small ones as 0.08%."""
    digits = 2 if share < 0.01 else 1
    return f"{share * 100:.{digits}f}".rstrip("0").rstrip(".") + "%"


def figure(told: Figure) -> str:
    """Return the sentence of a figure, without its full stop."""
    return SAID[told.name].format(
        count=f"{told.count:,}",
        of=f"{told.of:,}",
        days=DAYS,
        share=percent(told.share),
        most=percent(told.threshold),
    )


def remedy(account: Account, health: Health) -> str:
    return REMEDIES.get((health.worst.name, Channel(account.channel)), REMEDY)


def why(account: Account, health: Health) -> str:
    """Return why an account is slowed down or paused, and what to do."""
    return f"{figure(health.worst)}. {remedy(account, health)}"


def paused(reason: str) -> str:
    """Return the reason of a pause as the account's sentence gives it, from that of its health."""
    return f"Account health: {reason}"


def warning(account: Account, health: Health) -> str:
    """Return a sentence for the person who is about to send, if the account is near a threshold or above it."""
    if account.health == Account.Health.SLOW:
        return f"{account} sends more slowly for its health: {figure(health.worst)}."
    if health.level in {Level.NEAR, Level.SLOW, Level.PAUSE}:
        return f"{account} is near the limit of its health: {figure(health.worst)}. {remedy(account, health)}"
    return ""
