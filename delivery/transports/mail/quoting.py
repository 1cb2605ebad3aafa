"""Finds the words that a person wrote in an e-mail, without the text that their mail program added.

Most people write above what they answer, some below it. Each mail program marks the answered message in its own way,
in the language of its owner.
"""
# ruff: noqa: E501, RUF001 - words of many languages and scripts, one list on as few lines as it takes

import re
from collections.abc import Sequence

# The header of the message below, as Outlook copies it. All that follows is that message.
_HEADER = re.compile(
    r"\*?(From|Von|De|Da|Van|Dari|Daripada|Från|Fra|Od|От|Від|Kimden|发件人|寄件者|差出人|보낸 사람|من)\*?\s?[:：]\*?\s.+",
    re.IGNORECASE,
)
# "On Monday, Ann <ann@example.com> wrote:", also over several lines.
_LEADS = re.compile(r"(On|Am|Le|El|Il|Op|Pada|Em|No dia|Den|Dnia|W dniu|Am)\b", re.IGNORECASE)
_WROTE = re.compile(
    r"wrote|schrieb|a écrit|escribió|escreveu|ha scritto|schreef|menulis|napisał|написал|пишет|писал|yazdı|skrev|kirjoitti"
    r"|写道|寫道|のメール|작성|كتب",
    re.IGNORECASE,
)
_SENT_FROM = re.compile(
    r"(Sent|Gesendet|Envoyé|Enviado|Inviato|Verzonden|Verstuurd|Dihantar|Dikirim|Wysłane|Wysłano|Отправлено|Skickat|Sendt|"
    r"Lähetetty|Надіслано)\s(from|via|using|with|von|mit|depuis|de|à partir|desde|do|da|con|vanaf|van|met|vanuit|daripada|dari|"
    r"z|ze|из|с|от|från|fra|з)\b.*|(Von meinem|Get Outlook for|发自我的|從我的|iPhoneから送信|내 iPhone).*",
    re.IGNORECASE,
)
# How a mail server warns its reader of an e-mail from outside; the whole paragraph is the warning.
_WARNS = re.compile(
    r"\W{0,5}(caution|warning|attention|achtung|vorsicht|warnung|avertissement|atención|atenção|attenzione|let op|external|extern|externe|"
    r"externo|esterno|this e-?mail|this message|diese e-?mail|diese nachricht|ce message|cet e-?mail|este correo|este mensaje|esta mensagem|"
    r"questa e-?mail|questo messaggio|deze e-?mail|dit bericht|you don['’]t often get|some people who received|sie erhalten nicht oft)\b",
    re.IGNORECASE,
)
_OUTSIDE = re.compile(
    r"outside|extern|außerhalb|extérieur|fuera de|fora d|ester[nio]|buiten|often get e-?mail|nicht (oft|häufig) e-?mail",
    re.IGNORECASE,
)
LONGEST_WARNING = 1_000
LONGEST_LINE = 300  # characters that are examined
MOST_LINES = 3_000


def own_words(text: str) -> str:
    """Return the text above the quotation, without a marked signature; else the text below it.

    Empty where the person wrote nothing of their own.
    """
    lines = _without_warning(text.splitlines()[:MOST_LINES])
    looks = [line.strip()[:LONGEST_LINE] for line in lines]
    first = next((number for number in range(len(looks)) if _begins_quotation(looks, number)), len(looks))
    return _unsigned(lines[:first]) or _unsigned(_below(lines, looks, first))


def _without_warning(lines: Sequence[str]) -> Sequence[str]:
    """Return the lines below the warning of the reader's own mail server, up to the first empty line."""
    first = next((number for number, line in enumerate(lines) if line.strip()), len(lines))
    end = next((number for number in range(first, len(lines)) if not lines[number].strip()), len(lines))
    told = " ".join(lines[first:end])[:LONGEST_WARNING].strip()
    warns = end < len(lines) and _WARNS.match(told) and _OUTSIDE.search(told)
    return lines[end:] if warns else lines


def _begins_quotation(looks: Sequence[str], number: int) -> bool:
    look = looks[number]
    return look.startswith(">") or _ends_all(look) or _introduces(looks, number) > 0


def _ends_all(look: str) -> bool:
    """Decide whether the answered message follows, unmarked, to the end: below a rule or a header."""
    rule = len(look) > 4 and look.startswith("--") and look.endswith("--")
    return rule or (len(look) >= 8 and not look.strip("_")) or _HEADER.fullmatch(look) is not None


def _introduces(looks: Sequence[str], number: int) -> int:
    """Return how many lines from here on introduce the quotation ("Ann wrote:"); 0 where none do."""
    first = looks[number]
    if not _LEADS.match(first) and not any(letter.isdigit() for letter in first):
        return 0
    for count in (1, 2, 3):
        said = " ".join(looks[number : number + count])
        if not all(looks[number : number + count]) or len(said) > LONGEST_LINE:
            return 0
        if said.endswith((":", "：")) and _names_a_writer(said):
            return count
    return 0


def _names_a_writer(said: str) -> bool:
    dated = any(letter.isdigit() for letter in said)
    if _LEADS.match(said):
        return dated or "@" in said or _WROTE.search(said) is not None
    return dated and ("@" in said or _WROTE.search(said) is not None)


def _below(lines: Sequence[str], looks: Sequence[str], first: int) -> list[str]:
    """Return the text after the last marked line of the quotation; empty where its lines are not marked."""
    start = first
    while start < len(looks) and (not looks[start] or (skipped := _introduces(looks, start))):
        start += skipped if looks[start] else 1
    if start == len(looks) or not looks[start].startswith(">"):
        return []
    last = max(number for number in range(start, len(looks)) if looks[number].startswith(">"))
    after = list(lines[last + 1 :])
    end = next(
        (number for number, line in enumerate(after) if _ends_all(line.strip()[:LONGEST_LINE])), len(after)
    )
    return after[:end]


def _unsigned(lines: Sequence[str]) -> str:
    """Return the lines up to a marked signature."""
    for number, line in enumerate(lines):
        if line.strip() == "--" or _SENT_FROM.fullmatch(line.strip()[:LONGEST_LINE]):
            lines = lines[:number]
            break
    return "\n".join(lines).strip()
