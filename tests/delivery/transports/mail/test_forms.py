"""E-mails as people and machines really send them, each with how it must be read."""
# ruff: noqa: E501, RUF001 - one e-mail on one line; letters of many scripts

from base64 import b64encode
from datetime import UTC, datetime
from email.message import EmailMessage
from email.policy import SMTP
from quopri import encodestring

import pytest

from delivery.transports.base import Inbound
from delivery.transports.email.reports import PassedOver, Reader, event_of
from reminders.conversations.stop_words import is_stop

NOW = datetime(2026, 11, 18, 12, 0, tzinfo=UTC)
SEALED = "<0a1b2c-7-0.0123456789abcdef01234567@school.example>"
UNSEALED = "<0a1b2c-7-0@school.example>"
FOOTER = (
    "> The bus leaves at nine.\n> Reply STOP to leave this list.\n> -- \n> Unsubscribe: https://x.example/u"
)
GMAIL = f"\n\nOn Wed, 18 Nov 2026 at 09:00, School <news@school.example> wrote:\n\n{FOOTER}\n"
OUTLOOK = "\n\n________________________________\nFrom: School <news@school.example>\nSent: Wednesday\nTo: Anna\nSubject: Bus\n\nThe bus. Reply STOP to leave this list.\n"
FAIL = "Authentication-Results: mx.example; spf=fail smtp.mailfrom=x.example; dmarc=fail (p=REJECT) header.from=example.com\n"
PASS = (
    "Authentication-Results: mx.example; dkim=pass header.d=example.com; dmarc=pass header.from=example.com\n"
)


def mail(
    body: str, subject: str = "Re: Bus", headers: str = "", sender: str = "Anna <anna@example.com>"
) -> bytes:
    head = f"From: {sender}\nTo: news@school.example\nSubject: {subject}\nMessage-ID: <a1@example.com>\n{headers}"
    return f"{head}Content-Type: text/plain; charset=utf-8\n\n{body}".replace("\n", "\r\n").encode()


def page(html: str, headers: str = "") -> bytes:
    head = f"From: anna@example.com\nSubject: Re: Bus\nMessage-ID: <a1@example.com>\n{headers}"
    return f"{head}Content-Type: text/html; charset=utf-8\n\n{html}".encode()


def both(plain: str, html: str) -> bytes:
    made = EmailMessage(policy=SMTP)
    made["From"], made["Subject"], made["Message-ID"] = "anna@example.com", "Re: Bus", "<a1@example.com>"
    made.set_content(plain)
    made.add_alternative(html, subtype="html")
    made.add_attachment(b"STOP", maintype="text", subtype="plain", filename="stop.txt")
    return made.as_bytes()


def encoded(body: str, how: str, charset: str = "utf-8") -> bytes:
    raw = body.encode(charset)
    sent = b64encode(raw) if how == "base64" else encodestring(raw)
    head = f"From: anna@example.com\nSubject: Re: Bus\nContent-Transfer-Encoding: {how}\nContent-Type: text/plain; charset={charset}\n\n"
    return head.encode() + sent


def reading(raw: bytes, trusted: str = "") -> str:
    """The reading of an e-mail: stop, reply, automatic, not believed, and so on."""
    reader = Reader(own=frozenset({"news@school.example"}), domain="school.example", trusted=trusted)
    event = event_of(raw, reader=reader, now=NOW)
    if isinstance(event, PassedOver):
        return event.value
    assert isinstance(event, Inbound)
    stops = is_stop(event.text) or (bool(event.subject) and is_stop(f"{event.subject}\n\n{event.text}"))
    return "stop" if stops else "reply"


STOPS = [
    mail("STOP"),
    mail("stop" + GMAIL),
    mail("Stop." + OUTLOOK),
    mail("STOP\n\nSent from my iPhone" + GMAIL),
    mail("STOP\n\nGet Outlook for Android<https://aka.ms/x>" + OUTLOOK),
    mail(
        "Stop\n\nSent from Yahoo Mail on Android\n\n  On Wed, 18 Nov 2026 at 9:00, School<news@school.example> wrote:   The bus"
    ),
    mail("STOP\n-- \nAnna Lee\nTeacher"),
    mail("STOP\n\nAnna Lee\nTeacher, Hill School\nTel. +44 20 7946 0000\nwww.hill.example" + GMAIL),
    mail("Unsubscribe please\n\nKind regards\n\nAnna Lee | Head of Sales" + OUTLOOK),
    mail(FOOTER + "\n\nSTOP"),
    mail("On Wed, 18 Nov 2026, School <news@school.example> wrote:\n" + FOOTER + "\n\nSTOP\n\n-- \nAnna"),
    mail("", subject="STOP"),
    mail("\n\n\n", subject="Unsubscribe"),
    mail("Sent from my iPhone", subject="unsubscribe"),
    mail("Thanks\nAnna Lee", subject="Stop"),
    mail("Anna Lee", subject="=?utf-8?q?D=C3=A9sinscription?="),
    mail("STOP", subject="School trip"),
    mail("Please remove me from your list." + GMAIL),
    mail("Hi,\n\ncould you take me off your mailing list?\n\nThanks,\nAnna" + GMAIL),
    mail("Hello School,\nplease unsubscribe me from these\nemails. We moved to Leeds.\nAnna" + OUTLOOK),
    mail(
        "Abmelden\n\nVon meinem iPhone gesendet\n\n> Am 18.11.2026 um 09:00 schrieb School <news@school.example>:\n> \n> Der Bus"
    ),
    mail(
        "Bitte nehmen Sie mich aus dem Verteiler.\n\nMit freundlichen Grüßen\nErika Mustermann\n\nVon: School\nGesendet: Mittwoch"
    ),
    mail(
        "Bitte keine E-Mails mehr!\n\nAm Mi., 18. Nov. 2026 um 09:00 Uhr schrieb School <news@school.example>:\n> Der Bus"
    ),
    mail("Stop\n\nGesendet mit der Telekom Mail App"),
    mail(
        "Merci de me désinscrire de votre liste.\n\nEnvoyé de mon iPhone\n\n> Le 18 nov. 2026 à 09:00, School <news@school.example> a écrit :\n> Le bus"
    ),
    mail(
        "Je ne souhaite plus recevoir vos mails\n\nLe mer. 18 nov. 2026 à 09:00, School <news@school.example> a\nécrit :\n\n> Le bus"
    ),
    mail(
        "Por favor denme de baja\n\nEl mié, 18 nov 2026 a las 9:00, School (<news@school.example>) escribió:\n\n> El bus"
    ),
    mail("BAJA\n\nEnviado desde mi Samsung Galaxy"),
    mail(
        "Não quero mais receber e-mails.\n\nEm qua., 18 de nov. de 2026 às 09:00, School <news@school.example> escreveu:\n> O ônibus"
    ),
    mail("Sair\n\nEnviado do meu iPhone"),
    mail(
        "Cancellatemi dalla lista, grazie\n\nIl giorno mer 18 nov 2026 alle ore 09:00 School <news@school.example> ha scritto:\n> Il bus"
    ),
    mail("Basta\n\nInviato da iPhone"),
    mail(
        "Graag afmelden.\n\nMet vriendelijke groet,\nJan\n\nOp wo 18 nov 2026 om 09:00 schreef School <news@school.example>:\n> De bus"
    ),
    mail("Stop aub\n\nVerstuurd vanaf mijn iPhone"),
    mail(
        "Tolong keluarkan saya dari senarai\n\nPada Rab, 18 Nov 2026 pada 09:00, School <news@school.example> menulis:\n> Bas"
    ),
    mail("Berhenti. Terima kasih"),
    mail(
        "Proszę o usunięcie mnie z listy.\n\nśr., 18 lis 2026 o 09:00 School <news@school.example> napisał(a):\n> Autobus"
    ),
    mail("Wypisz mnie\n\nWysłane z iPhone'a"),
    mail(
        "Удалите меня из рассылки\n\nср, 18 нояб. 2026 г. в 09:00, School <news@school.example>:\n> Автобус"
    ),
    mail("Стоп\n\nОтправлено с iPhone"),
    mail("退订\n\n发自我的iPhone"),
    mail("配信停止\n\n2026年11月18日(水) 9:00 School <news@school.example>:\n> バス"),
    mail("Durdur\n\nSchool <news@school.example>, 18 Kas 2026 Çar, 09:00 tarihinde şunu yazdı:\n> Otobüs"),
    mail("Sluta, tack\n\nDen ons 18 nov. 2026 kl 09:00 skrev School <news@school.example>:\n> Bussen"),
    page("<p>STOP</p>"),
    page(
        "<html><head><title>x</title><style>p {color: red}</style></head><body><div>STOP</div><br><div class=gmail_quote>On Wed, 18 Nov 2026 at 09:00, School &lt;news@school.example&gt; wrote:<blockquote>The bus. Reply STOP</blockquote></div></body></html>"
    ),
    page(
        "<div>Stop<br><br>Sent from my iPhone</div><div><br><blockquote type=cite>On 18 Nov 2026, at 09:00, School wrote:<br></blockquote></div><blockquote type=cite>The bus</blockquote>"
    ),
    page(
        "<p class=MsoNormal>Please remove me from your list<o:p></o:p></p><div style='border:none;border-top:solid #E1E1E1 1.0pt'><p><b>From:</b> School &lt;news@school.example&gt;<br><b>Sent:</b> Wednesday</p></div><p>The bus</p>"
    ),
    page("<blockquote>The bus. Reply STOP to leave</blockquote><p>STOP</p>"),
    page('<p title="a > b">STO<!-- <p>not</p> -->P</p>'),
    page("&#83;TOP&nbsp;&#160;"),
    both("STOP\n", "<p>Something else</p>"),
    both("\n", "<p>STOP</p>"),
    encoded("STOP\n\nAnna Lee", "base64"),
    encoded("Désinscription", "quoted-printable", "iso-8859-1"),
    encoded("Отписаться", "base64", "koi8-r"),
    encoded("STOP", "base64", "utf-16"),
    *(
        head.encode() + "Désabonner\r\n\r\nAnna Lee".encode("latin-1")
        for head in (
            "From: anna@example.com\r\nSubject: Re: Bus\r\n\r\n",  # old programs do not say in which letters
            "From: anna@example.com\r\nSubject: Re: Bus\r\nContent-Type: text/plain; charset=unknown-8bit\r\n\r\n",
            "From: anna@example.com\r\nSubject: Re: Bus\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n",
        )
    ),
    b"From: anna@example.com\r\nSubject: D\xe9sabonner\r\n\r\n",
    mail(
        "Unsubscribe\n\nAnn Smith | Senior Buyer\nACME Ltd., 12 Main St, London EC1A 1BB\nT +44 20 7946 0123"
    ),
    mail("STOP\n\nGesendet: Dienstag, 05. Mai 2026 um 10:12 Uhr\nVon: School\nAn: Anna\n\nHallo"),
    mail("STOP", headers=PASS),
    mail("STOP", headers="Auto-Submitted: no\n"),
    mail("STOP", headers="Return-Path: <anna@example.com>\n"),
    mail("STOP", headers="Authentication-Results: mx.example; dmarc=none header.from=example.com\n"),
    *(
        mail("STOP", headers=f"Authentication-Results: mx.example; dmarc=pass header.from={written}\n")
        for written in ("anna@example.com", '"example.com"', "Example.COM.")
    ),
    # The reader's own mail server adds to e-mails from outside.
    mail("[EXTERNAL]\n\nSTOP" + GMAIL),
    mail("CAUTION: This email originated from outside of the organization. Do not click\nlinks.\n\nSTOP"),
    mail("You don't often get email from anna@example.com. Learn why this is important\n\nSTOP"),
    mail("ACHTUNG: Diese E-Mail stammt von einem externen Absender!\n\n\nAbmelden" + OUTLOOK),
    mail("", subject="[EXTERNAL] STOP"),
    mail("Stop\n\nHämta Outlook för iOS\n________________________________\nFrån: School"),
]
REPLIES = [
    mail("Yes, we come!" + GMAIL),
    mail(GMAIL),
    mail("stop by tomorrow" + GMAIL),
    mail("Don't stop, we like it"),
    mail("Yes!\n\n> Reply STOP to leave this list."),
    mail("Thanks" + OUTLOOK),
    mail("Sent from my iPhone" + GMAIL),
    mail("Hello\n\n" + FOOTER),
    mail("", subject="Re: STOP"),
    mail("Can we cancel the appointment on Monday?", subject="Cancel"),
    mail("Is this the right stop?", subject="Bus stop"),
    mail("See the attached newsletter: how to stop smoking.\nMore inside.", subject="Our newsletter"),
    mail("Please do not remove me from your list"),
    mail("Cancel\n\nmy booking 12345 for tomorrow please, and keep the one on Friday"),
    mail("CANCEL\nTHE MEETING ON FRIDAY"),
    mail("---------- Forwarded message ---------\nFrom: Bob\nSubject: STOP\n\nSTOP", subject="Fwd: STOP"),
    mail("Begin forwarded message:\n\n> From: Bob\n> Subject: STOP\n>\n> STOP", subject="Fwd: STOP"),
    mail("Zur Info\n\nVon: Bob\nGesendet: heute\nBetreff: Abmelden\n\nAbmelden", subject="WG: Abmelden"),
    mail("FYI\n\n-----Original Message-----\nFrom: Bob\n\nPlease remove me from your list."),
    page("<p>Great</p><blockquote>Please remove me from your list.</blockquote>"),
    page("<style>STOP</style><script>STOP</script><p>Yes</p>"),
    both("See the file\n", "<p>See the file</p>"),
    mail("I am out of office tomorrow, can we meet?", subject="Re: Out of office"),
    mail("ok", subject="[EXT] Re: Stop"),
    mail("Caution: the bus is late\n\nSee you"),
]
AUTOMATIC = [
    mail("STOP", headers="Auto-Submitted: auto-replied\n"),
    mail("STOP", headers="Auto-Submitted: auto-generated; owner-email=x\n"),
    mail("Away", headers="X-Autoreply: yes\n"),
    mail("Away", headers="X-Autorespond: yes\n"),
    mail("Away", headers="X-Auto-Response-Suppress: All\n"),
    mail("Away", headers="Precedence: auto_reply\n"),
    mail("Away", headers="Precedence: junk\n"),
    mail("Away", headers="Return-Path: <>\n"),
    mail("STOP the presses", headers="List-Id: <news.example>\nPrecedence: list\n", subject="Newsletter"),
    mail("STOP", headers="List-Unsubscribe: <mailto:x@example.com>\n", subject="Newsletter"),
    mail("STOP", sender="no-reply@example.com"),
    mail(
        "Sorry",
        sender="Mail Delivery System <MAILER-DAEMON@mx.example>",
        subject="Undelivered Mail Returned to Sender",
    ),
    *(
        mail("Stop", subject=subject)
        for subject in (
            "Automatic reply: Bus",
            "Out of Office: Bus",
            "Abwesenheitsnotiz: Bus",
            "Automatische Antwort: Bus",
            "Réponse automatique : Bus",
            "Respuesta automática: Bus",
            "Resposta automática: Bus",
            "Risposta automatica: Bus",
            "Automatisch antwoord: Bus",
            "Balasan automatik: Bus",
            "Odpowiedź automatyczna: Bus",
            "Автоответ: Bus",
            "自动回复: Bus",
            "=?utf-8?b?UsOpcG9uc2UgYXV0b21hdGlxdWU=?= : Bus",
        )
    ),
]
NOT_BELIEVED = [
    mail("STOP", headers=FAIL),
    mail("STOP", headers=FAIL + PASS),  # the topmost is the server's own
    mail("STOP", headers=f"In-Reply-To: {SEALED}\n" + FAIL),
    mail("Yes!", headers=FAIL),
    mail(
        "STOP",
        headers="Authentication-Results: spf=fail (sender IP is 192.0.2.1); dkim=none; dmarc=fail action=oreject header.from=example.com;compauth=fail\n",
    ),
    mail(
        "STOP",
        headers="Authentication-Results: mx.example 1; dmarc=fail (p=none (x)) header.from=example.com\n",
    ),
    mail("STOP", headers="From: other@example.com\n"),
    mail("STOP", sender="anna@example.com, evil@evil.example"),
    mail("STOP", headers="Authentication-Results: mx.example; dmarc=pass header.from=evil.example\n"),
]


@pytest.mark.parametrize("raw", STOPS)
def test_this_asks_to_stop(raw: bytes) -> None:
    assert reading(raw) == "stop"


@pytest.mark.parametrize("raw", REPLIES)
def test_this_is_a_reply_and_no_stop(raw: bytes) -> None:
    assert reading(raw) == "reply"


@pytest.mark.parametrize("raw", AUTOMATIC)
def test_this_is_automatic(raw: bytes) -> None:
    assert reading(raw) == "automatic"


@pytest.mark.parametrize("raw", NOT_BELIEVED)
def test_this_is_not_believed(raw: bytes) -> None:
    assert reading(raw) == "not believed"


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        (PASS, "stop"),
        ("", "not believed"),  # the server that checks every e-mail has not checked this one
        (PASS.replace("mx.example", "evil.example"), "not believed"),
        (PASS.replace("mx.example", "evil.example") + FAIL, "not believed"),
        (FAIL.replace("mx.example", "evil.example") + PASS, "stop"),  # a failure that another server claims
        (f"In-Reply-To: {SEALED}\n", "stop"),
        (f"References: <x@y> {SEALED} <z@example.com>\n", "stop"),
        (f"In-Reply-To: {UNSEALED}\n", "not believed"),  # others of the same run could guess it
        (f"In-Reply-To: {SEALED.replace('school', 'evil')}\n", "not believed"),
        (f"In-Reply-To: {SEALED}\n" + FAIL, "not believed"),
        ("Authentication-Results: mx.example; dmarc=none\n", "not believed"),
    ],
)
def test_with_a_server_that_is_trusted_its_word_is_needed(headers: str, expected: str) -> None:
    assert reading(mail("STOP", headers=headers), trusted="MX.example") == expected


def test_an_unproven_sender_is_nobody_but_who_has_our_message() -> None:
    reader = Reader(own=frozenset(), domain="school.example", trusted="mx.example")
    event = event_of(mail("STOP", headers=f"In-Reply-To: {SEALED}\n"), reader=reader, now=NOW)
    assert isinstance(event, Inbound)
    assert (event.sender, event.chat, event.answers) == ("", "", SEALED)


def test_there_are_enough_of_them() -> None:
    assert len(STOPS) >= 60
