"""Tells whether somebody's message is a wish to hear nothing more (SPEC C6).

Only a message that is nothing but a stop word counts: "please do not stop" must not opt anybody out.
"""

import unicodedata
from collections.abc import Collection

# The words that carriers in North America require, and what people write elsewhere.
USUAL = (
    *("stop", "stop all", "stopall", "stop it", "please stop", "unsubscribe", "cancel", "end", "quit"),
    *("opt out", "optout", "opt-out", "opt me out", "remove me", "no more", "stop please", "stop now"),
    *("unsubscribe me", "stop messaging me", "stop texting me", "stop messages", "stop sending messages"),
    *("arrêt", "arrêter", "arrêtez", "désabonner", "désinscrire", "me désabonner", "stop sms"),  # French
    *("stopp", "abmelden", "abbestellen", "austragen", "aufhören"),  # German
    *("baja", "alto", "parar", "para", "cancelar", "darse de baja", "no más"),  # Spanish
    *("pare", "sair", "descadastrar", "remover", "cancelar inscrição"),  # Portuguese
    *("basta", "fermati", "disiscrivi", "cancellami", "annulla"),  # Italian
    *("afmelden", "uitschrijven", "stoppen"),  # Dutch
    *("berhenti", "henti", "batal", "hentikan", "jangan hantar lagi"),  # Malay, Indonesian
    *("wypisz", "rezygnuję", "koniec", "стоп", "отписаться", "отпишись", "хватит"),  # Polish, Russian
    *("стоп", "відписатися", "dur", "durdur", "iptal", "ret"),  # Ukrainian, Turkish
    *("avsluta", "sluta", "avregistrera", "afmeld", "avmeld", "lopeta", "peruuta"),  # the Nordic countries
    *("توقف", "إيقاف", "الغاء", "إلغاء الاشتراك", "قف"),  # Arabic
    *("रुको", "रोकें", "बंद करो", "बंद करें"),  # Hindi
    *("停止", "退订", "退訂", "取消", "取消订阅", "取消訂閱", "停"),  # Chinese
    *("配信停止", "停止してください", "수신거부", "중지", "그만"),  # Japanese, Korean
    *("หยุด", "ยกเลิก", "dừng", "ngừng", "hủy", "huỷ", "tigil", "itigil"),  # Thai, Vietnamese, Filipino
)


def is_stop(text: str, words: Collection[str] = ()) -> bool:
    """Whether `text` is one of `words`, or of the usual ones where none are given."""
    said = normal(text)
    alike = set(said.split())
    said = alike.pop() if len(alike) == 1 else said  # stop stop STOP
    return bool(said) and said in {normal(word) for word in words or USUAL}


def normal(text: str) -> str:
    """Letters and digits alone, in one case, without accents, words one space apart."""
    # Some letters have a case only once they are taken apart, and some fall apart only in one case.
    plain = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
    kept = "".join(_kept(sign) for sign in plain)
    return " ".join(unicodedata.normalize("NFKC", kept).split())


def _kept(sign: str) -> str:
    """The sign itself; nothing for an accent or what cannot be seen; a space for all that is no letter or digit."""
    category = unicodedata.category(sign)
    if category in {"Mn", "Me", "Cf"}:
        return ""
    return sign if category[0] in "LNM" else " "
