"""The days on which something is sent: seven bits, Monday the lowest. Pure."""

NAMES = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
DAYS = tuple((1 << number, name) for number, name in enumerate(NAMES))


def day_names(bits: int) -> str:
    """The days in words: Mon, Tue, Fri."""
    chosen = [name[:3] for bit, name in DAYS if bits & bit]
    return "Every day" if len(chosen) == len(DAYS) else ", ".join(chosen)


def days_of(bits: int) -> frozenset[int]:
    """The days as `window.py` takes them, 0 is Monday."""
    return frozenset(day for day in range(7) if bits & 1 << day)
