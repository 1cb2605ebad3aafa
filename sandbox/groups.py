"""The groups that an account of the sandbox is a member of: invented, and the same at every start.

Nothing is stored: an id holds its number, and a name follows from the number.
"""

from dataclasses import dataclass
from zlib import crc32

FIRST = (
    "Class 3B parents",
    "Riverside choir",
    "Saturday football U11",
    "Chess club",
    "Neighbours of Elm Street",
    "Book circle",
    "Robotics team",
    "Class 5A parents",
    "Allotment gardeners",
    "Swimming lessons, Tuesday",
    "School orchestra",
    "Hiking friends",
)
WHOSE = (
    "Maple", "Harbour", "Northside", "Willow", "Sunrise", "Old Mill", "Lakeside", "Hilltop", "Birch",
    "Station", "Meadow", "Castle", "Orchard", "Bridge", "Garden", "Market", "Forest", "Valley", "Lighthouse",
    "Clover", "Juniper", "Windmill", "Stone", "Silver", "Cedar",
)  # fmt: skip
WHAT = (
    "parents", "choir", "runners", "chess club", "football U9", "book circle", "drama group", "volunteers",
    "science club", "neighbours", "cyclists", "dance class", "scouts", "bakers", "painters", "band",
    "tennis juniors", "gardeners", "homework club", "quiz night", "swimmers", "yoga mornings", "photo walk",
    "language table", "kindergarten",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    id: str
    name: str
    size: int


def group(account: str, number: int) -> Group:
    return Group(id=f"{_prefix(account)}{number:06d}@g.us", name=name(number), size=8 + number * 37 % 190)


def name(number: int) -> str:
    """Return the name of group `number`; no two of the first hundred thousand are the same."""
    if number < len(FIRST):
        return FIRST[number]
    round_, place = divmod(number - len(FIRST), len(WHOSE) * len(WHAT))
    # Stepping both words at once mixes them; the shift makes the pairs of one round differ.
    whose = WHOSE[place % len(WHOSE)]
    what = WHAT[(place + place // len(WHOSE)) % len(WHAT)]
    return f"{whose} {what} {round_ + 1}" if round_ else f"{whose} {what}"


def number_of(account: str, address: str) -> int | None:
    """Return which group of `account` has this id, if any can have it."""
    prefix, digits = address[:12], address[12:18]
    if len(address) == 23 and prefix == _prefix(account) and address.endswith("@g.us") and digits.isdecimal():
        return int(digits)
    return None


def _prefix(account: str) -> str:
    return f"1203630{crc32(account.encode()) % 10**5:05d}"
