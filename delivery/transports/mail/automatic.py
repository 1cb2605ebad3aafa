"""Tells automatic e-mails from those that a person wrote (RFC 3834, and headers that are not in it)."""
# ruff: noqa: E501, RUF001 - words of many languages and scripts, one list on as few lines as it takes

import re

from delivery.transports.mail.mime import Part

# Headers that no person's e-mail has, whatever their value.
MARKS = frozenset(
    {
        "x-autoreply",
        "x-autorespond",
        "x-autoresponder",
        "x-autoreply-from",
        "x-mail-autoreply",
        "x-auto-response-suppress",
        "x-fc-machinegenerated",
        "x-failed-recipients",
        "feedback-id",
        "list-id",
        "list-unsubscribe",
    }
)
BULK = frozenset({"bulk", "list", "junk", "auto_reply", "auto-reply"})
ROBOTS = frozenset(
    {"mailer-daemon", "postmaster", "noreply", "no-reply", "donotreply", "do-not-reply", "bounce", "bounces"}
)
# How the subject of an out-of-office answer begins.
AWAY = re.compile(
    r"(automatic reply|auto(?:matic)?[ -]?(?:reply|response|responder)|autoreply|out of (?:the )?office|away from (?:the )?office|"
    r"on (?:annual )?(?:leave|vacation|holiday)\b.{0,20}re:|abwesenheit|automatische antwort|abwesend|nicht im (?:büro|haus)|"
    r"réponse automatique|absence du bureau|message d'absence|respuesta automática|fuera de (?:la )?oficina|resposta automática|"
    r"ausência temporária|fora do escritório|risposta automatica|fuori sede|fuori ufficio|automatisch antwoord|afwezig|niet aanwezig|"
    r"balasan automatik|balasan otomatis|jawapan automatik|di luar pejabat|odpowiedź automatyczna|autoodpowiedź|nieobecność|"
    r"автоответ|автоматический ответ|autosvar|automatisk svar|automaattinen vastaus|otomatik yanıt|自动回复|自動回覆|自動返信|자동 회신|رد تلقائي|"
    r"undeliver|unzustellbar|delivery status notification|mail delivery (?:failed|subsystem)|returned mail|failure notice)",
    re.IGNORECASE,
)


def is_automatic(mail: Part, sender: str) -> bool:
    """Decide whether no person wrote it: a holiday notice, a bounce without a report, a newsletter, a list."""
    said = mail.first("auto-submitted").partition(";")[0].strip().lower()
    if said not in {"", "no"} or mail.first("precedence").strip().lower() in BULK:
        return True
    if any(name in MARKS for name, _ in mail.headers) or "<>" in mail.all("return-path"):
        return True
    if sender.partition("@")[0] in ROBOTS or mail.kind == "multipart/report":
        return True
    return AWAY.match(mail.words("subject")[:200]) is not None
