"""What somebody wrote in an e-mail, without what their mail program put below it."""

import re

# Where the answered message, or a signature, begins. Each mail program has its own way, in the language of its owner.
BELOW = re.compile(
    r"""^(
        >.* | --\s? | _{8,} | -{2,}.*-{2,}           # a quotation; a signature; a rule, as Outlook draws it
        | (On|Am|Le|El|Il|Op|Pada|Em)\b.{4,200}:      # On Monday, Ann wrote:
        | (From|Von|De|Da|Van|Dari):\s.+              # the header of the message below
        | (Sent|Gesendet|Envoyé|Enviado|Inviato|Verzonden|Dihantar)\s(from|via|von|depuis|desde|da|vanaf|daripada)\b.*
    )$""",
    re.VERBOSE | re.IGNORECASE,
)


def own_words(text: str) -> str:
    """The lines above all that; the whole text where nothing is above it, as of who answers below a quotation."""
    above: list[str] = []
    for line in text.splitlines():
        if BELOW.match(line.strip()):
            break
        above.append(line)
    return "\n".join(above).strip() or text.strip()
