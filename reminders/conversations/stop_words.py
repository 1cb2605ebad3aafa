"""Decides whether a message asks for no more messages (SPEC C6), on every channel.

Three forms count:
1. only a stop word, with greetings, thanks and a name around it: "Hi, STOP please. Thanks, Anna";
2. a stop word in the first line, with only a signature below it;
3. a whole sentence that asks for it: "could you take me off your list?" (`stop_requests.py`).

A stop word inside another sentence never counts: "please do not stop", "stop by tomorrow".
"""

import re
import unicodedata
from collections.abc import Collection, Sequence

from reminders.conversations.stop_requests import is_request
from reminders.conversations.stop_vocabulary import (
    CLOSINGS,
    CONDITIONS,
    FOOTERS,
    GREETINGS,
    POLITE,
    REASONS,
    USUAL,
)

SMALL_WORDS = frozenset(
    {"of", "and", "de", "da", "di", "del", "la", "van", "von", "der", "den", "bin", "binti", "at", "the"}
)
SPOKEN_WORDS = frozenset(
    {"the", "my", "your", "this", "that", "these", "it", "is", "die", "den", "mein", "meine"}
)
LONGEST = 4_000  # letters of a message that are read
MOST_LINES = 40
LONGEST_SENTENCE = 300  # letters in which the reason for a request is looked for
LONGEST_NAME = 60
MOST_OF_A_NAME = 8  # words
MOST_SPOKEN = 2  # words in small letters in a line with a number, as in "tel. and fax"
_SENTENCE_END = re.compile(r"[.!?;\n\u3002\uff01\uff1f\u0964\u061f\u2026]+")
_ABBREVIATED = re.compile(r"\b(?:[A-Z]\.(?:[A-Z]\.)*|[A-Z][a-z]{1,3}\.(?:[A-Z]\.)*)$")  # M.D., Ph.D., Jr.
_COMMA = re.compile(r"[,\uff0c\u060c\u2013\u2014]| - ")


def is_stop(text: str, words: Collection[str] = ()) -> bool:
    """Return whether `text` asks for no more messages, with one of `words`, or else of the usual ones."""
    text = text[:LONGEST].strip()
    known = {normal(word) for word in words or USUAL}
    lines = [line for line in text.splitlines() if normal(line)][:MOST_LINES]
    if not lines:
        return False
    if _is_word(text, known) or _is_word_and_signature(lines, known) or _is_word_and_name(lines, known):
        return True
    return not words and any(map(_asks, _sentences(text)))


def normal(text: str) -> str:
    """Return only letters and digits, in one case, without accents, with one space between words."""
    # Some letters have a case only after they are decomposed, and some decompose only in one case.
    plain = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
    kept = "".join(_kept(sign) for sign in plain)
    return " ".join(unicodedata.normalize("NFKC", kept).split())


def _kept(sign: str) -> str:
    """Return the sign itself, nothing for an accent or an invisible sign, or a space for other signs."""
    category = unicodedata.category(sign)
    if category in {"Mn", "Me", "Cf"}:
        return ""
    return sign if category[0] in "LNM" else " "


def _is_word(text: str, known: Collection[str]) -> bool:
    """Return whether the text is a stop word, once or repeated, with only polite words around it."""
    said = normal(text)
    alike = set(said.split())
    said = alike.pop() if len(alike) == 1 else said  # stop stop STOP
    return said in known or _without_politeness(_after_greeting(text)) in known


def _is_word_and_signature(lines: Sequence[str], known: Collection[str]) -> bool:
    """Return whether the first line, after a greeting, is a stop word and everything below is a signature."""
    first = 1 if len(lines) > 1 and _is_greeting(lines[0]) else 0
    for last in range(first, min(first + 2, len(lines) - 1)):
        if _is_word(" ".join(lines[first : last + 1]), known) and _is_signature(lines[last + 1 :], known):
            return True
    return first == 1 and len(lines) == 2 and _is_word(lines[1], known)


def _is_word_and_name(lines: Sequence[str], known: Collection[str]) -> bool:
    """Return whether the message is one line with a stop word and a name: "STOP, Anna Lee"."""
    head, *names = _COMMA.split(lines[0], maxsplit=1)
    return len(lines) == 1 and bool(names) and _is_word(head, known) and _is_name(names[0].strip())


def _is_signature(lines: Sequence[str], known: Collection[str]) -> bool:
    """Return whether these lines carry no message: only names, numbers, farewells and lines that a phone adds."""
    for line in lines:
        said = normal(line)
        if _begins(said, _CLOSINGS) or _begins(said, _FOOTERS):
            return True
        if not (
            _is_name(line) or _is_contact(line) or _is_word(line, known) or not _without_politeness(line)
        ):
            return False
    return True


def _is_name(line: str) -> bool:
    """Return whether the line could be a name or title: few words, none in small letters, and no end of a sentence."""
    words = line.split()
    ends = line.rstrip().endswith((".", "?", "!", "\u3002", "\uff1f"))
    if (
        not words
        or len(line) > LONGEST_NAME
        or len(words) > MOST_OF_A_NAME
        or (ends and not _ABBREVIATED.search(line.rstrip()))
    ):
        return False
    # In capitals every word looks like a name: a word of a sentence shows that the line is not one.
    if line.isupper() and any(word.casefold() in SPOKEN_WORDS for word in words):
        return False
    cased = any(letter.islower() or letter.isupper() for letter in line)
    return (cased or len(line) <= 20) and not any(
        word[0].islower() and word not in SMALL_WORDS for word in words
    )


def _is_contact(line: str) -> bool:
    """Return whether the line could be an address or a number, with hardly any words of a sentence."""
    digits = sum(letter.isdigit() for letter in line)
    spoken = [word for word in line.split() if word.isalpha() and word.islower() and len(word) > 1]
    signs = "@" in line or "www." in line or "://" in line or digits >= 5
    street = (
        digits > 0 and not spoken and len(line.split()) > 6
    )  # "Acme Ltd., 12 Main Street, London EC1A 1BB"
    return len(line) <= 100 and (street or (signs and len(spoken) <= MOST_SPOKEN))


def _is_greeting(line: str) -> bool:
    said = normal(line)
    return len(said.split()) <= 6 and _begins(said, _GREETINGS)


def _after_greeting(text: str) -> str:
    """Return the text without "Dear Anna," at its beginning."""
    head, comma, rest = text.partition(",")
    return rest if comma and rest.strip() and _is_greeting(head) and len(head) <= LONGEST_NAME else text


def _without_politeness(text: str) -> str:
    """Return the text, normalized, without polite words at both ends and without a farewell and name."""
    words = normal(text).split()[:MOST_LINES]
    for start in range(1, len(words)):
        if len(words) - start <= 6 and _begins(" ".join(words[start:]), _CLOSINGS):
            words = words[:start]
            break
    while words and (count := _count(words, _POLITE, at_end=False)):
        words = words[count:]
    while words and (count := _count(words, _POLITE, at_end=True)):
        words = words[:-count]
    return " ".join(words)


def _count(words: Sequence[str], phrases: Collection[str], *, at_end: bool) -> int:
    """Return how many of the words at one end are one of the phrases."""
    for count in range(min(6, len(words)), 0, -1):
        some = words[-count:] if at_end else words[:count]
        if " ".join(some) in phrases:
            return count
    return 0


def _begins(said: str, phrases: Collection[str]) -> bool:
    words = said.split()[:6]
    return any(" ".join(words[:count]) in phrases for count in range(1, len(words) + 1))


def _sentences(text: str) -> list[str]:
    """Return the sentences by lines as they stand, and by joined lines: mail programs break long ones."""
    joined = " ".join(text.split("\n"))
    found = [each for one in (text, joined) for each in _SENTENCE_END.split(one)]
    heads = [_COMMA.split(each, maxsplit=1)[0] for each in found]
    return [*found, *heads, *_tails(found), *(_after_greeting(each) for each in found)]


def _tails(sentences: Sequence[str]) -> list[str]:
    """Return the parts behind the last comma that ask politely: "I have moved, please remove me from your list"."""
    found = []
    for each in sentences:
        *before, tail = _COMMA.split(each)
        asks = _count(normal(tail).split(), _POLITE, at_end=False) > 0
        if before and asks and not any(_begins(normal(part), _CONDITIONS) for part in before):
            found.append(tail)
    return found


def _asks(sentence: str) -> bool:
    words = _without_reason(sentence)
    return is_request(normal(words)) or is_request(_without_politeness(_after_greeting(words)))


def _without_reason(sentence: str) -> str:
    """Return the sentence up to the reason that it gives: "... because I have moved"."""
    words = normal(sentence[:LONGEST_SENTENCE]).split()
    for start in range(1, len(words)):
        if any(" ".join(words[start : start + count]) in _REASONS for count in (1, 2)):
            return " ".join(words[:start])
    return sentence


_POLITE = frozenset(map(normal, POLITE))
_CLOSINGS = frozenset(map(normal, CLOSINGS))
_FOOTERS = frozenset(map(normal, FOOTERS))
_GREETINGS = frozenset(map(normal, GREETINGS))
_CONDITIONS = frozenset(map(normal, CONDITIONS))
_REASONS = frozenset(map(normal, REASONS))
