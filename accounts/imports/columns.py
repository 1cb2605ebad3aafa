"""The meanings of a file's columns: guessed from titles and contents, and corrected by a person."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from accounts.addresses import BadAddressError, canonical

ADDRESS, NAME, TAGS, VARIABLE, IGNORE = "address", "name", "tags", "variable", ""
RESERVED = frozenset({"name", "address"})  # every message already has these two variables

TITLES = {
    ADDRESS: r"address|phone( ?(number|no\.?))?|mobile( ?(number|phone))?|cell( ?phone)?|tel\.?|telephone|"
    r"whats ?app( ?(number|id))?|number|e-?mail( ?address)?|mail|mailbox|(group|chat|room) ?id|jid|room|"
    r"linked ?in( ?(url|profile))?|profile( ?url)?|matrix( ?id)?|"
    r"telefon(nummer)?|handy(nummer)?|mobil(nummer)?|tel[eé]fono|celular|correo( electr[oó]nico)?|"
    r"t[eé]l[eé]phone|portable|no\.? ?(telefon|hp)|nombor telefon|emel|adresse|direcci[oó]n",
    NAME: r"name|full ?name|display ?name|contact( ?name)?|recipient|group( ?name)?|title|"
    r"nama|nombre|nom|vollst[aä]ndiger name",
    TAGS: r"tags?|labels?|lists?|segments?|etiquetas|schlagw[oö]rter",
}
# The channels an address column can belong to, the most certain first.
CHANNELS = ("email", "linkedin", "matrix", "whatsapp")
# WhatsApp's endings are domains too, but nobody has a mailbox there.
WHATSAPP_ID = re.compile(r"^[\d:-]+@(g\.us|c\.us|s\.whatsapp\.net|lid|newsletter)$", re.IGNORECASE)
ENOUGH = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column: its title, its meaning, and the variable that it fills, if any."""

    title: str
    means: str
    variable: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Guess:
    header: bool
    channel: str
    columns: tuple[Column, ...]


def guess(rows: Sequence[Sequence[str]], *, region: str = "") -> Guess:
    """Return what the first rows of a file say about its columns."""
    width = max((len(row) for row in rows), default=0)
    table = [[*row, *[""] * (width - len(row))] for row in rows]
    header = bool(table) and _is_header(table[0], region)
    titles = [cell.strip() for cell in table[0]] if header else [f"Column {n + 1}" for n in range(width)]
    body = table[1:] if header else table
    columns = [[row[n] for row in body] for n in range(width)]
    channel, place = _address(titles, columns, region)
    means = _meanings(titles, place) if header else [ADDRESS if n == place else IGNORE for n in range(width)]
    return Guess(header=header, channel=channel, columns=tuple(_columns(titles, means)))


def _columns(titles: Sequence[str], means: Sequence[str]) -> Iterator[Column]:
    """Yield the columns. Two columns with one title fill two variables: city and city_2."""
    taken = Counter[str]()
    for title, what in zip(titles, means, strict=True):
        variable = variable_name(title) if what == VARIABLE else ""
        taken[variable] += 1
        number = f"_{taken[variable]}" if variable and taken[variable] > 1 else ""
        yield Column(title=title, means=what, variable=variable + number)


def variable_name(title: str) -> str:
    """Return the title as a variable of a message: “First name” becomes {{ first_name }}."""
    name = re.sub(r"\W+", "_", title.strip().lower()).strip("_")[:40]
    return f"{name}_" if name in RESERVED else name


def _is_header(row: Sequence[str], region: str) -> bool:
    """Return whether the row holds titles: a first row with an address in it is already a recipient."""
    return any(row) and not any(_channels(cell, region) for cell in row)


def _channels(cell: str, region: str) -> list[str]:
    """Return the channels on which the cell is an address. A bare word does not count as a profile here."""
    return [channel for channel in CHANNELS if _telling(channel, cell) and _valid(channel, cell, region)]


def _telling(channel: str, cell: str) -> bool:
    match channel:
        case "email":
            return "@" in cell and not cell.strip().startswith("@") and not WHATSAPP_ID.match(cell.strip())
        case "linkedin":
            return "linkedin.com/" in cell.lower()
        case "matrix":
            return cell.strip()[:1] in {"!", "#", "@"} or "matrix.to/" in cell
    return sum(letter.isdecimal() for letter in cell) >= 7


def _valid(channel: str, cell: str, region: str) -> bool:
    try:
        canonical(channel, cell, region=region)
    except BadAddressError:
        return False
    return True


def _address(titles: Sequence[str], columns: Sequence[Sequence[str]], region: str) -> tuple[str, int | None]:
    """Return the channel and the column of addresses: a fitting title counts as much as all cells together."""
    best: tuple[float, str, int | None] = (0.0, "whatsapp", None)
    for place, (title, cells) in enumerate(zip(titles, columns, strict=True)):
        filled = [cell for cell in cells if cell.strip()]
        fitting = [channel for cell in filled for channel in _channels(cell, region)[:1]]
        channel = max(CHANNELS, key=fitting.count)
        share = fitting.count(channel) / len(filled) if filled else 0.0
        score = share + _titled(title, ADDRESS)
        if score >= ENOUGH and score > best[0]:
            best = score, channel if fitting else best[1], place
    return best[1], best[2]


def _meanings(titles: Sequence[str], address: int | None) -> list[str]:
    """Return the meanings: one address, one name, one of tags. Other columns with a title are variables."""
    found: list[str] = []
    for place, title in enumerate(titles):
        if place == address:
            found.append(ADDRESS)
        elif what := next((w for w in (NAME, TAGS) if _titled(title, w) and w not in found), ""):
            found.append(what)
        else:
            found.append(VARIABLE if variable_name(title) else IGNORE)
    return found


def _titled(title: str, what: str) -> bool:
    return re.fullmatch(TITLES[what], title.strip().replace("_", " "), re.IGNORECASE) is not None
