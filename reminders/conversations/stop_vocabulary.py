"""Words and phrases of requests for no more messages, in many languages.

They are written as people write them; `stop_words.normal` brings them into the form in which they are compared.
"""
# ruff: noqa: E501, RUF001 - one language on one line; letters of many scripts
# fmt: off

# Words that carriers in North America require, and words that people use elsewhere.
USUAL = (
    *("stop", "stop all", "stopall", "stop it", "please stop", "unsubscribe", "cancel", "end", "quit"),
    *("opt out", "optout", "opt-out", "opt me out", "remove me", "no more", "stop please", "stop now"),
    *("unsubscribe me", "stop messaging me", "stop texting me", "stop messages", "stop sending messages"),
    *("remove", "revoke", "stop promotions", "stop promo", "stop promos", "stop ads", "cease and desist"),
    *("unsubscribe all", "stop sending", "stop sending this", "stop sending these", "stop texting this number"),
    *("arrêt", "arrêter", "arrêtez", "désabonner", "désinscrire", "me désabonner", "stop sms"),  # French
    *("désinscription", "désabonnement", "se désabonner", "se désinscrire"),
    *("stopp", "abmelden", "abbestellen", "austragen", "aufhören", "abmeldung"),  # German
    *("baja", "alto", "parar", "para", "cancelar", "darse de baja", "no más", "dar de baja"),  # Spanish
    *("desuscribir", "desuscribirme", "cancelar suscripción", "no más mensajes", "no más correos", "basta ya"),
    *("pare", "sair", "descadastrar", "remover", "cancelar inscrição"),  # Portuguese
    *("basta", "fermati", "disiscrivi", "cancellami", "annulla", "disiscrivimi", "cancellazione"),  # Italian
    *("disiscrivetemi", "disiscrizione", "basta messaggi", "basta mail", "basta email"),
    *("afmelden", "uitschrijven", "stoppen", "afmelding", "stop ermee", "stop hiermee"),  # Dutch
    *("berhenti", "henti", "batal", "hentikan", "jangan hantar lagi", "berhenti langganan", "berhenti berlangganan"),  # Malay, Indonesian
    *("wypisz", "rezygnuję", "koniec", "стоп", "отписаться", "отпишись", "хватит"),  # Polish, Russian
    *("wypisz mnie", "отписка", "отпишите", "отпишите меня", "отменить подписку", "прекратите", "перестаньте"),
    *("стоп", "відписатися", "dur", "durdur", "iptal", "ret"),  # Ukrainian, Turkish
    *("avsluta", "sluta", "avregistrera", "afmeld", "avmeld", "lopeta", "peruuta"),  # the Nordic countries
    *("توقف", "إيقاف", "الغاء", "إلغاء الاشتراك", "قف"),  # Arabic
    *("रुको", "रोकें", "बंद करो", "बंद करें"),  # Hindi
    *("停止", "停止发送", "请停止发送", "不要再发", "不要再发了", "退订", "退訂", "取消", "取消订阅", "取消訂閱", "停"),  # Chinese
    *("配信停止", "停止してください", "もう送らないでください", "수신거부", "중지", "그만"),  # Japanese, Korean
    *("หยุด", "ยกเลิก", "dừng", "ngừng", "hủy", "huỷ", "tigil", "itigil"),  # Thai, Vietnamese, Filipino
)
# Words before or after a request that do not change its meaning.
POLITE = (
    *("hi", "hello", "hey", "hi there", "hello there", "hi all", "dear all", "dear sir or madam", "good morning"),
    *("good afternoon", "good evening", "dear sirs", "dear sir", "dear madam", "to whom it may concern"),
    *("please", "pls", "plz", "kindly", "thanks", "thank you", "many thanks", "thanks in advance", "thx"),
    *("not interested", "no interest", "i am not interested", "i'm not interested", "wrong number", "wrong person"),
    *("kein interesse", "ich habe kein interesse", "falsche nummer"),
    *("pas intéressé", "pas intéressée", "mauvais numéro", "no me interesa", "no estoy interesado"),
    *("no estoy interesada", "número equivocado", "não tenho interesse", "número errado"),
    *("non mi interessa", "non sono interessato", "non sono interessata", "numero sbagliato"),
    *("geen interesse", "verkeerd nummer", "tidak berminat", "tak berminat"),
    *("salah nombor", "salah nomor", "nie jestem zainteresowany", "nie jestem zainteresowana", "pomyłka"),
    *("zły numer", "не интересно", "неинтересно", "ошиблись номером"),
    *("thank you very much", "thanks a lot", "sorry", "but", "now", "immediately", "asap", "ok", "okay", "yes"),
    *("hallo", "guten tag", "guten morgen", "sehr geehrte damen und herren", "moin", "liebes team", "bitte"),
    *("danke", "vielen dank", "danke schön", "danke im voraus", "sofort"),
    *("bonjour", "bonsoir", "madame", "monsieur", "madame monsieur", "svp", "s'il vous plaît", "stp"),
    *("merci", "merci d'avance", "merci beaucoup"),
    *("hola", "buenos días", "buenas tardes", "estimados", "estimados señores", "por favor", "gracias"),
    *("muchas gracias", "olá", "bom dia", "boa tarde", "obrigado", "obrigada", "prezados"),
    *("buongiorno", "buonasera", "salve", "ciao", "per favore", "per cortesia", "grazie", "grazie mille"),
    *("beste", "goedemorgen", "goedemiddag", "geachte heer mevrouw", "alstublieft", "alsjeblieft", "aub"),
    *("graag", "bedankt", "dank u", "alvast bedankt", "dank je"),
    *("salam", "selamat pagi", "selamat petang", "assalamualaikum", "tolong", "mohon", "sila", "harap"),
    *("terima kasih", "tq", "makasih", "trims"),
    *("dzień dobry", "proszę", "dziękuję", "witam", "z góry dziękuję", "pozdrawiam"),
    *("здравствуйте", "добрый день", "пожалуйста", "спасибо", "заранее спасибо", "прошу"),
    *("merhaba", "lütfen", "teşekkürler", "hej", "tack", "takk", "vänligen", "venligst", "kiitos", "moi"),
    *("مرحبا", "من فضلك", "شكرا", "请", "您好", "你好", "谢谢", "請", "謝謝", "お願いします", "감사합니다"),
)
# After one of these only names, titles and numbers follow.
CLOSINGS = (
    *("regards", "best", "best regards", "kind regards", "warm regards", "yours", "yours sincerely", "cheers"),
    *("sincerely", "thanks", "thank you", "many thanks", "all the best", "best wishes", "yours faithfully"),
    *("mit freundlichen grüßen", "mit freundlichem gruß", "freundliche grüße", "viele grüße", "beste grüße"),
    *("liebe grüße", "mfg", "lg", "vg", "gruß", "grüße", "danke", "vielen dank"),
    *("cordialement", "bien cordialement", "bien à vous", "salutations", "cdlt", "sincères salutations"),
    *("merci", "saludos", "un saludo", "atentamente", "saludos cordiales", "atenciosamente", "abraços", "att"),
    *("gracias", "obrigado", "obrigada", "cordiali saluti", "distinti saluti", "saluti", "un saluto"),
    *("cordialmente", "grazie", "met vriendelijke groet", "met vriendelijke groeten", "groet", "groeten", "mvg"),
    *("bedankt", "terima kasih", "salam hormat", "hormat saya", "sekian terima kasih", "sekian"),
    *("pozdrawiam", "z poważaniem", "dziękuję", "с уважением", "спасибо", "всего доброго", "med vänliga hälsningar"),
    *("mvh", "vennlig hilsen", "med venlig hilsen", "saygılarımla", "مع تحياتي", "此致", "よろしくお願いします"),
)
# Signatures of mail programs and phones, and beginnings of notices that companies put below every e-mail.
FOOTERS = (
    *("sent from", "sent via", "get outlook", "gesendet", "von meinem", "diese nachricht wurde von", "holen sie sich outlook"),
    *("envoyé", "obtenir outlook", "télécharger outlook", "provenance", "enviado", "obtener outlook", "obter o outlook"),
    *("inviato", "ottieni outlook", "verzonden", "verstuurd", "outlook voor", "dihantar", "dikirim", "dapatkan outlook"),
    *("hämta outlook", "hent outlook", "hanki outlook", "scarica outlook", "baixe o outlook", "загрузить outlook", "获取 outlook"),
    *("wysłane", "wysłano", "pobierz", "отправлено", "послано", "skickat", "sendt fra", "lähetetty", "gönderildi"),
    *("发自", "從我的", "发送自", "iphoneから送信", "내 iphone", "أرسلت", "надіслано", "yahoo mail", "virus free"),
    *("this e mail", "this email", "this message", "confidential", "confidentiality", "disclaimer", "diese e mail"),
    *("ce message", "ce courriel", "este mensaje", "este correo", "esta mensagem", "questo messaggio", "questa e mail"),
    *("dit bericht", "deze e mail", "mesej ini", "emel ini", "pesan ini", "ta wiadomość", "это сообщение"),
)
GREETINGS = (
    "hi", "hello", "hey", "hi there", "hello there", "good morning", "good afternoon", "good evening", "dear", "to whom it may concern",
    "liebe", "lieber", "hallo", "sehr geehrte", "sehr geehrter", "guten tag", "guten morgen", "moin", "bonjour", "bonsoir", "cher", "chère",
    "hola", "estimado", "estimada", "estimados", "buenos días", "olá", "prezado", "prezados", "bom dia", "gentile", "caro", "cara", "ciao",
    "buongiorno", "salve", "beste", "geachte", "hoi", "goedemorgen", "salam", "yth", "selamat pagi", "assalamualaikum", "szanowni", "drogi",
    "dzień dobry", "witam", "уважаемые", "уважаемый", "привет", "здравствуйте", "добрый день", "merhaba", "hej",
)
# Before a request, these make it depend on something; then it is a question for a person.
CONDITIONS = ("if", "unless", "when", "wenn", "falls", "sobald", "si", "cuando", "se", "quando", "als", "indien", "wanneer", "jika", "kalau", "bila", "jeśli", "jeżeli", "gdy", "если", "когда")
# After a request, these begin the reason for it.
REASONS = (
    *("because", "as i", "as we", "since i", "since we", "for i", "weil", "da ich", "da wir", "denn ich", "parce que", "car je", "car nous"),
    *("porque", "ya que", "pues ya", "pois", "perché", "poiché", "visto che", "omdat", "aangezien", "want ik", "kerana", "sebab", "karena"),
    *("ponieważ", "bo", "gdyż", "потому что", "так как", "поскольку"),
)
