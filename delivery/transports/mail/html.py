"""Makes the HTML version of an e-mail from its text: a person's words are shown, never run."""

import re
from html import escape

_LINK = re.compile(r"https?://[^\s<>\"']+")
_AFTER_LINK = ".,;:!?)]}*_"
_PARAGRAPHS = re.compile(r"\n\s*\n")


def html_of(text: str, *, image: str = "", unsubscribe_url: str = "") -> str:
    """Return `text` as a page of paragraphs with its links; `image` is the Content-ID of a picture to show above."""
    # `dir="auto"` shows each paragraph in the direction of its own script.
    shown = [f'<p dir="auto">{_paragraph(each)}</p>' for each in _PARAGRAPHS.split(text.strip()) if each]
    if image:
        shown.insert(0, f'<p><img src="cid:{escape(image)}" alt="" style="max-width: 100%"></p>')
    if unsubscribe_url:
        shown.append(f'<p><small><a href="{escape(unsubscribe_url)}">Unsubscribe</a></small></p>')
    return "\n".join(
        ["<!DOCTYPE html>", '<html><head><meta charset="utf-8"></head><body>', *shown, "</body></html>\n"]
    )


def _paragraph(text: str) -> str:
    pieces, end = [], 0
    for match in _LINK.finditer(text):
        url = match[0].rstrip(_AFTER_LINK)
        pieces += [_escaped(text[end : match.start()]), f'<a href="{escape(url)}">{_escaped(url)}</a>']
        end = match.start() + len(url)
    return "".join([*pieces, _escaped(text[end:])])


def _escaped(text: str) -> str:
    return escape(text).replace("\n", "<br>\n")
