"""Sentences by which people ask politely to get no more messages, in ten languages.

A sentence counts only as a whole: "stop sending me e-mails" does, "do not stop sending me e-mails" does not. Patterns
are matched against text in the form of `stop_words.normal`: small letters without accents or punctuation, one space
between words. A sentence is short (`LONGEST`), so that no pattern can take long.
"""
# ruff: noqa: E501 - a pattern is easier to read on one line than in pieces

import re

_MAILS = r"(?:e ?mails?|mails?|messages?|newsletters?|texts?|sms|reminders?|notifications?|mailings?|updates?|spam)"
_LIST = rf"(?:(?:\w+ )?(?:lists?|database|contacts|distribution|records|system|group)|{_MAILS}(?: lists?)?)"
_YOUR = r"(?:of )?(?:your|this|the|all|any|these|those|all your|all of your|all these)"
_ME = r"(?:me|us|my (?:e ?mail|e ?mail address|address|name|number|phone number|details|data|contact|info)|this (?:address|number))"
_NOW = r"(?: (?:now|again|any ?more|ever|at once|immediately|asap|from now on|in future|in the future|from you))*"
_ASKED = (
    r"(?:(?:can|could|would|will) (?:you|u) |i (?:want|wish|need|would like|d like|ask) you to |just |you may )?"
    r"(?:please |pls |kindly |just )*"
)

ENGLISH = (
    rf"{_ASKED}(?:remove|delete|unsubscribe|drop|strike)(?: {_ME})?(?: (?:from|off|of|out of) (?:{_YOUR} )?{_LIST}){_NOW}",
    rf"{_ASKED}(?:remove|delete|unsubscribe) {_ME}{_NOW}",
    rf"{_ASKED}(?:take|get|keep|leave) {_ME} (?:off|out of)(?: (?:{_YOUR} )?{_LIST})?{_NOW}",
    (
        rf"{_ASKED}(?:stop|quit|cease) (?:sending|mailing|e ?mailing|messaging|msging|texting|txting|contacting|calling|writing|spamming|bothering)"
        rf"(?: to)? (?:me|us)(?: (?:these|those|this|any|more|all|your|such|so many))*(?: {_MAILS}| stuff)?{_NOW}"
    ),
    rf"{_ASKED}(?:stop|quit|cease) (?:sending )?(?:(?:these|those|this|any|more|all|your|the) )*{_MAILS}(?: to me)?{_NOW}",
    (
        rf"{_ASKED}(?:do not|don ?t|never) (?:send|e ?mail|mail|message|text|contact|write|write to|bother) (?:to )?(?:me|us)"
        rf"(?: (?:any|these|those|more|your|such))*(?: {_MAILS})?{_NOW}"
    ),
    (
        rf"i (?:really )?(?:do not|don ?t|no longer|never) (?:wish|want|care|like) to (?:receive|get|have|hear|be contacted)"
        rf"(?: from you)?(?: (?:any|these|those|this|more|your|such|further|anything|by you))*(?: {_MAILS})?{_NOW}"
    ),
    rf"i (?:do not|don ?t|no longer) want (?:(?:any|these|those|more|your|such|further) )*{_MAILS}{_NOW}",
    (
        rf"i (?:want|wish|would like|d like|need) to (?:unsubscribe|opt out|be removed|be taken off|be unsubscribed|stop receiving"
        rf"|cancel my subscription)(?: (?:from|of|off)?(?: ?{_YOUR})? ?{_LIST})?{_NOW}"
    ),
    rf"(?:unsubscribe|opt) (?:(?:me|us) )?(?:out )?(?:from|of) (?:{_YOUR} )?{_LIST}{_NOW}",
    rf"no more {_MAILS}{_NOW}",
    r"i (?:(?:have )?(?:already )?(?:asked|told)) you to stop(?: (?:already|before|twice|many times))?",
    r"(?:please )?lose my number|(?:just |please )*leave me alone",
)
GERMAN = (
    (
        r"(?:(?:konnen|konnten|wurden) sie |(?:kannst|konntest) du |(?:konnt|konntet) ihr )?(?:bitte )?(?:(?:nehmen|streichen|loschen|entfernen|tragen) sie|"
        r"nehmen|nehmt|nimm|nehme|streichen|streicht|streiche?|loschen|loscht|losche?|entfernen|entfernt|entferne?|tragen|tragt|trage?)? ?(?:bitte )?(?:mich|meine "
        r"(?:e mail )?adresse|uns)(?: bitte)? (?:aus|von|vom)(?: \w+){0,2} \w*(?:verteiler|liste|newsletter|datenbank|gruppe|kartei)"
        r"(?: (?:aus|ab|heraus|raus|nehmen|streichen|loschen|entfernen|austragen|abmelden))?"
    ),
    (
        r"(?:bitte )?(?:schicken|senden|schreiben|schicke|sende|schick|schreib)(?: sie)? mir(?: bitte)? (?:nichts mehr|nicht mehr|keine(?: weiteren| solchen)? "
        r"(?:e ?mails?|mails?|nachrichten|newsletter|sms|erinnerungen)(?: mehr)?)"
    ),
    (
        r"(?:bitte )?keine(?: weiteren| solchen)? (?:e ?mails?|mails?|nachrichten|newsletter|sms|erinnerungen)(?: mehr)?"
        r"(?: an mich)?(?: senden| schicken)?"
    ),
    (
        r"ich (?:mochte|will|wunsche)(?: bitte| von ihnen)* keine(?: weiteren)? (?:e ?mails?|mails?|nachrichten|newsletter|sms|werbung)"
        r"(?: von ihnen)?(?: mehr)?(?: erhalten| bekommen)?"
    ),
    r"(?:bitte )?(?:melden sie|melde|meldet|tragen sie|trage?|tragt) mich(?: bitte)?(?: vom \w+)? (?:ab|aus)",
    (
        r"(?:bitte )?(?:aus|von|vom) (?:(?:dem|der|den|ihrem|ihrer|eurem|eurer|diesem|dieser) )?\w*(?:verteiler|liste|newsletter|datenbank|gruppe|kartei)(?: bitte)?"
        r" (?:nehmen|streichen|loschen|entfernen|austragen|abmelden|raus|herausnehmen|rausnehmen)"
    ),
    (
        r"(?:bitte |ich (?:mochte|will|wurde gerne?) )*(?:(?:den|diesen|ihren|euren) )?newsletter(?: bitte)?"
        r" (?:abbestellen|abmelden|kundigen|stornieren|stoppen|beenden)(?: bitte)?"
    ),
    r"hiermit (?:bestelle|melde) ich (?:(?:den|diesen|ihren|euren|mich vom|mich von ihrem) )?newsletter ab",
    r"ich (?:mochte|will|wurde gerne?)(?: bitte| gerne?)*(?: (?:vom|aus dem) \w+)? (?:abgemeldet|ausgetragen|geloscht|gestrichen|entfernt) werden",
    r"(?:bitte )?(?:lassen sie|lasst|lass) mich(?: bitte)?(?: endlich)? in (?:ruhe|frieden)",
    r"(?:ich mochte mich|hiermit mochte ich mich|bitte mich)(?: bitte)?(?: vom \w+| von \w+ \w+)? (?:abmelden|austragen)",
    r"(?:bitte )?(?:horen sie auf|aufhoren)(?: mir)?(?: (?:zu schreiben|mit (?:den|diesen) \w+|nachrichten zu schicken))?",
    (
        r"(?:bitte )?(?:loschen sie|loscht|losche?|entfernen sie|entfernt|entferne?)(?: bitte)? (?:mich|meine (?:daten|adresse|e ?mail ?adresse|nummer|telefonnummer|"
        r"handynummer|kontaktdaten))"
    ),
)
FRENCH = (
    (
        r"(?:(?:pouvez|pourriez) vous |veuillez |merci de |je (?:vous )?(?:prie|demande) de )?(?:svp |s il vous plait )?(?:me |m )?"
        r"(?:retirer|desinscrire|desabonner|supprimer|enlever|effacer|retirez|desinscrivez|desabonnez|supprimez|enlevez)(?: moi)?"
        r" (?:de|a) (?:votre|cette|la|vos|ces) (?:\w+ )?(?:listes?|liste de diffusion|newsletter|mails?|e ?mails?|envois|fichiers?|messages?)"
        r"(?: de diffusion| d envoi)?"
    ),
    r"(?:veuillez |merci de )?(?:me )?(?:desinscrire|desabonner|desinscrivez moi|desabonnez moi|retirez moi)",
    (
        r"(?:veuillez |merci de )?(?:ne (?:plus )?m (?:envoyez|envoyer|ecrivez|ecrire|contactez|contacter)(?: plus)?|ne plus m (?:envoyer|ecrire|contacter)|"
        r"(?:cessez|arretez) de m (?:envoyer|ecrire|contacter))(?: (?:de|des|ces|vos|d))?(?: (?:messages?|e ?mails?|mails?|sms|courriels?))?"
    ),
    (
        r"je ne (?:souhaite|veux|desire) plus (?:recevoir|etre contactee?)(?: (?:de|des|ces|vos|d|aucun))?(?: (?:messages?|e ?mails?|mails?|sms|courriels?|"
        r"newsletters?|publicites?))?(?: de votre part)?"
    ),
    (
        r"je (?:souhaite|veux|voudrais|desire) (?:me desabonner|me desinscrire|etre (?:retiree?|desinscrite?))(?: de (?:votre|cette|la) (?:\w+ )?liste"
        r"(?: de diffusion)?)?"
    ),
    r"plus de (?:messages?|e ?mails?|mails?|sms)",
    r"(?:svp )?(?:laissez|laisse|fichez|foutez) moi (?:tranquille|en paix|la paix)",
)
SPANISH = (
    (
        r"(?:(?:puede|podria|pueden|podrian|quiere|favor de) )?(?:por favor )?(?:me )?(?:darme|dar|den|denme|deme|dame|dar me) de baja"
        r"(?: (?:de|en) (?:su|esta|la|sus|estos) (?:\w+ )?(?:lista|listas|boletin|correos?|mensajes?|base de datos)(?: de (?:correos?|distribucion|envio))?)?"
    ),
    (
        r"(?:(?:puede|podria|pueden|podrian) )?(?:por favor )?(?:me )?(?:eliminarme|eliminar|quitarme|quitar|borrarme|borrar|eliminenme|eliminame|quitenme|"
        r"quiteme|quitame|borrenme|borreme|elimineme|sacarme|saquenme|saqueme)(?: mi (?:correo|nombre|direccion|numero))? de (?:su|esta|la|sus) (?:\w+ )?"
        r"(?:lista|listas|boletin|correos?|base de datos)(?: de (?:correos?|distribucion|contactos|envio))?"
    ),
    (
        r"(?:por favor )?no (?:me )?(?:envien|envie|envies|manden|mande|mandes|escriban|escriba|escribas|enviarme|contacten|contacte|quiero recibir|"
        r"deseo recibir|quiero|deseo)(?: (?:estos|sus|mas))*(?: (?:mas|correos?|mensajes?|e ?mails?|sms|publicidad|recordatorios?))(?: mas| nunca mas)?"
    ),
    r"(?:por favor )?no me (?:escriban|escriba|escribas|contacten|contacte|contactes)",
    (
        r"(?:por favor )?(?:dejen|deje|deja|dejad) de (?:enviarme|mandarme|escribirme|molestar|molestarme|contactarme)(?: (?:estos|sus|mas))?"
        r"(?: (?:correos?|mensajes?|e ?mails?|sms))?"
    ),
    r"(?:por favor )?no (?:me )?(?:enviar|mandar)(?:me)?(?: mas)? (?:correos?|mensajes?|e ?mails?|sms)(?: mas)?",
    r"ya no (?:quiero|deseo) recibir(?: (?:estos|sus|mas))*(?: (?:correos?|mensajes?|e ?mails?|sms|publicidad|recordatorios?|nada))?(?: suyos| de ustedes)?",
    r"(?:por favor )?(?:dejenme|dejeme|dejame|dejadme) en paz",
    r"(?:quiero|quisiera|deseo|solicito)(?: que me den| darme|) ?(?:la )?(?:de )?baja(?: de (?:su|esta|la) (?:lista|boletin))?",
)
PORTUGUESE = (
    (
        r"(?:(?:pode|poderia|podem|poderiam|queira) )?(?:por favor )?(?:me )?(?:remover|remova|removam|retirar|retire|retirem|tirar|tire|tirem|excluir|exclua|"
        r"descadastrar|descadastre)(?: me)?(?: meu (?:e ?mail|nome|numero|endereco))? (?:da|de|dessa|desta|na) (?:sua |vossa |minha |)(?:\w+ )?"
        r"(?:lista|listas|newsletter|base de dados)(?: de (?:e ?mails?|distribuicao|contatos|contactos|envio))?"
    ),
    (
        r"(?:por favor )?(?:nao (?:me )?(?:envie|enviem|mande|mandem|escreva|escrevam|contate|contatem)(?: me)?|parem? de (?:me )?(?:enviar|mandar|escrever)(?: me)?)"
        r"(?: (?:mais|estes|esses|seus))*(?: (?:mais|e ?mails?|mensagens|mensagem|sms))(?: mais)?"
    ),
    r"(?:eu )?nao (?:quero|desejo|gostaria de) (?:mais )?receber(?: (?:mais|estes|esses|seus|suas|estas|essas))*(?: (?:e ?mails?|mensagens|sms|noticias))?(?: mais)?",
    r"(?:por favor )?sair (?:da|desta|dessa|do|deste|desse) (?:sua |vossa )?(?:lista|newsletter|grupo)(?: de (?:e ?mails?|contatos|transmissao))?",
    r"(?:por favor )?(?:me deixem?|deixem? me) em paz",
    r"(?:quero|gostaria de|desejo) (?:me )?(?:descadastrar|sair|cancelar)(?: me)?(?: (?:da|desta|dessa|a) (?:sua )?(?:lista|newsletter|minha inscricao|inscricao))?",
)
ITALIAN = (
    (
        r"(?:(?:puo|potete|potrebbe|potreste|vi prego di|la prego di|si prega di) )?(?:per favore |cortesemente |per cortesia )?(?:di )?"
        r"(?:cancellarmi|rimuovermi|togliermi|eliminarmi|cancellatemi|rimuovetemi|toglietemi|eliminatemi|cancellami|rimuovimi|toglimi|mi cancelli|mi rimuova|mi tolga)"
        r"(?: (?:dalla|da|dal|dalle|dai) (?:vostra |sua |questa |vostro |suo |vostri |)(?:\w+ )?(?:lista|liste|mailing list|newsletter|elenco|database|contatti)"
        r"(?: di (?:distribuzione|contatti|invio))?)?"
    ),
    (
        r"(?:per favore )?(?:non (?:mi )?(?:mandate|mandatemi|inviate|inviatemi|scrivete|scrivetemi|mandi|invii|scriva|contattatemi|contattate|mandarmi|inviarmi|"
        r"scrivermi)|smettete di (?:scrivermi|mandarmi|inviarmi|contattarmi)|smettetela)(?: (?:altre|questi|queste|piu))*(?: (?:piu|e ?mail|mail|messaggi|sms|messaggio))(?: piu)?"
    ),
    r"smettete di (?:scrivermi|contattarmi)|(?:adesso |ora )?smett(?:etela|ila)|(?:per favore )?lascia(?:temi|mi) in pace",
    (
        r"non (?:voglio|desidero|vorrei) (?:piu )?(?:ricevere|essere contattat[oa])(?: (?:piu|altre|altri|queste|questi|vostre|vostri|le vostre|i vostri))*"
        r"(?: (?:e ?mail|mail|messaggi|sms|newsletter|comunicazioni))?(?: piu)?"
    ),
    r"(?:voglio|vorrei|desidero) (?:disiscrivermi|cancellarmi|essere (?:cancellat[oa]|rimoss[oa]))(?: (?:dalla|da|dal) (?:vostra |questa |)(?:\w+ )?(?:lista|newsletter|mailing list))?",
)
DUTCH = (
    (
        r"(?:(?:kunt|kun|wilt|wil|zou) (?:u|je|jij|jullie) )?(?:mij|me|ons|mijn (?:e ?mail ?adres|adres|naam|nummer))?(?: ?(?:a ?u ?b|alstublieft|aub|svp|graag))?"
        r" ?(?:haal|verwijder|schrap|schrijf|gelieve)?(?: (?:mij|me|ons|mijn (?:e ?mail ?adres|adres|naam|nummer)))?(?: (?:alstublieft|aub|svp|graag))?"
        r" (?:van|uit) (?:uw|de|deze|jullie|je) (?:\w+ )?(?:\w*lijst|nieuwsbrief|bestand|database)(?: (?:af|halen|verwijderen|afhalen|schrappen|te verwijderen|te halen|uitschrijven))?"
    ),
    r"(?:(?:kunt|wilt) u )?(?:schrijf|meld|graag|gelieve)? ?(?:mij|me)(?: (?:alstublieft|aub|graag|svp))? (?:uit|af|uitschrijven|afmelden|uit te schrijven|af te melden)",
    r"(?:stuur|mail|app|schrijf|stuurt u) (?:mij|me) (?:alstublieft |aub )?(?:geen|niets|niet)(?: (?:\w+ )?(?:e ?mails?|mails?|berichten|sms|nieuwsbrieven))?(?: meer)?",
    r"(?:ik wil )?(?:graag )?geen (?:e ?mails?|mails?|berichten|sms|nieuwsbrieven|nieuwsbrief)(?: van (?:u|jullie))?(?: meer)?(?: ontvangen| krijgen)?",
    r"ik (?:wil|zou|wens)(?: me| mij)?(?: graag)? (?:afmelden|uitschrijven|uitgeschreven worden|afgemeld worden)(?: (?:van|voor) (?:uw|de|deze) \w+)?",
    r"(?:gelieve|graag) (?:mij|me|mijn (?:e ?mail ?adres|adres|naam|nummer)) (?:te )?(?:verwijderen|schrappen|halen)(?: (?:uit|van) (?:uw|de|deze|jullie) \w+)?",
    r"laat (?:me|mij)(?: (?:aub|alstublieft|alsjeblieft|nu))? met rust",
    r"(?:stop|hou|houd) (?:aub |alstublieft )?(?:met|op met) (?:mij |me )?(?:(?:e ?mails?|berichten) )?(?:te )?(?:mailen|sturen|appen|schrijven)",
)
MALAY = (
    (
        r"(?:tolong |sila |mohon |harap |boleh(?:kah)? (?:anda |awak )?(?:tolong )?)*(?:keluarkan|buang|padam|hapus|hapuskan|hapuskanlah|keluarin) (?:saya|nama saya|nomor saya|nombor saya|"
        r"e ?mel saya|email saya|kami)(?: (?:dari|daripada) (?:senarai|daftar|milis|grup|database)(?: (?:anda|ini|e ?mel|email|penerima|tuan|puan))*)?"
    ),
    (
        r"(?:tolong |sila |mohon |harap )*(?:jangan|berhenti|hentikan|usah|stop) (?:lagi )?(?:hantar|kirim|mengirim|menghantar|kirimkan|hantarkan|hubungi|menghubungi|mesej|wa|sms|email)"
        r"(?: (?:lagi|saya|kepada saya|ke saya|apa apa|mesej|pesan|email|e ?mel|sms|ini|apapun))+"
    ),
    r"saya (?:tidak|tak|nggak|gak|dah tak) (?:mahu|mau|nak|ingin|hendak)(?: lagi)? (?:terima|menerima|dapat|mendapat)(?: (?:mesej|pesan|email|e ?mel|sms|ini|lagi|dari anda|apa apa))*",
    r"(?:tolong |sila |mohon |harap )*jangan (?:ganggu|hubungi|kacau)(?: saya)?(?: lagi)?",
    r"(?:tolong |sila |mohon |harap )*(?:stop|berhenti) (?:hantar|kirim|mengirim|menghantar)(?: (?:mesej|pesan|email|e ?mel|sms|wa))?",
    r"saya (?:mahu|mau|nak|ingin) (?:berhenti|berhenti langganan|berhenti berlangganan|unsubscribe|batal)(?: langganan)?",
)
POLISH = (
    (
        r"(?:prosze |czy (?:moglibyscie|moga panstwo|moze pan|moze pani|mozecie) )?(?:prosze )?(?:o )?(?:usunac|usuniecie|wypisac|wypisanie|wykreslic|wykreslenie|usuncie|wypiszcie|wykreslcie)"
        r"(?: (?:mnie|mojego adresu|moj adres|nas))(?: (?:z|ze) (?:\w+ )?(?:listy|bazy|newslettera|subskrypcji)(?: (?:mailingowej|odbiorcow|adresowej|danych|wysylkowej))?)?"
    ),
    (
        r"(?:prosze )?(?:juz )?(?:nie (?:wysylac|wysyłac|wysylajcie|wysyłajcie|pisac|piszcie|pisz|przysylajcie|przysyłajcie|kontaktowac sie))(?: (?:do mnie|mi|juz|wiecej|ze mna))+"
        r"(?: (?:e ?maili|maili|wiadomosci|sms ow|smsow))?(?: (?:wiecej|juz))?"
    ),
    r"nie (?:chce|zycze sobie)(?: juz)?(?: wiecej)? (?:otrzymywac|dostawac)(?: (?:od was|tych|takich|waszych|wiecej|juz))*(?: (?:e ?maili|maili|wiadomosci|smsow))?",
    r"prosze(?: mnie)?(?: o)? (?:usunac|usuniecie|wypisac|wypisanie|wykreslic|wykreslenie)(?: mnie)?(?: (?:z|ze) (?:\w+ )?(?:listy|bazy|newslettera|subskrypcji)(?: \w+)?)?",
    r"(?:prosze )?juz (?:do mnie|mi) nie (?:pisac|piszcie|wysylac|wysylajcie|przysylac|przysylajcie)(?: wiecej)?",
    r"nie (?:chce|zycze sobie)(?: juz)?(?: wiecej) (?:e ?maili|maili|wiadomosci|smsow)(?: od was)?",
    r"chce (?:sie )?(?:wypisac|zrezygnowac)(?: sie)?(?: (?:z|ze) (?:\w+ )?(?:listy|newslettera|subskrypcji))?",
    r"(?:prosze )?(?:przestan|przestancie|przestac)(?: (?:juz|do mnie|mi))* (?:pisac|wysylac|przysylac|spamowac|nekac)(?: (?:do mnie|mi|mnie|maile|wiadomosci|sms y|smsy))*",
    r"(?:dajcie|daj|prosze dac) mi (?:swiety )?spokoj|(?:zostawcie|zostaw) mnie w spokoju",
    r"rezygnuje (?:z|ze) (?:\w+ )?(?:subskrypcji|newslettera|wiadomosci|listy)",
)
RUSSIAN = (
    (
        r"(?:прошу |(?:не )?могли бы вы |можете )?(?:пожалуиста )?(?:вас )?(?:удалите|удалить|исключите|исключить|уберите|убрать|отпишите|отписать|вычеркните)(?: меня| мои адрес| мои номер| нас)"
        r"(?: (?:из|от) (?:вашеи|этои|вашего|своего|своеи|)(?: ?\w+)? ?(?:рассылки|списка|рассылок|базы))?(?: рассылки)?"
    ),
    (
        r"(?:пожалуиста )?(?:больше )?(?:не (?:пишите|присылаите|шлите|отправляите|звоните|беспокоите)|перестаньте (?:мне )?(?:писать|присылать|слать|отправлять)|прекратите (?:мне )?(?:писать|рассылку|слать|"
        r"присылать))(?: (?:мне|меня|больше|сюда|эти|ваши|пожалуиста))+(?: (?:сообщения|письма|письмо|писем|рассылку|смс|спам))?(?: больше)?"
    ),
    r"(?:я )?(?:больше )?не (?:хочу|желаю)(?: больше)? (?:получать|видеть)(?: (?:от вас|эти|ваши|такие|больше|никакие|никаких))*(?: (?:сообщения|сообщении|письма|писем|рассылку|рассылки|смс))?",
    r"(?:пожалуиста )?(?:прекратите|остановите|отключите) (?:эту |вашу |свою |)(?:рассылку|спам)",
    r"(?:перестаньте|прекратите|хватит)(?: мне)? (?:писать|слать|присылать|отправлять)(?: мне)?(?: (?:сообщения|письма|рассылку|смс|спам))?",
    r"(?:пожалуиста )?(?:больше )?не (?:присылаите|шлите|отправляите)(?: мне)?(?: больше)? (?:сообщении|писем|смс)",
    r"(?:пожалуиста )?больше не (?:присылаите|пишите|шлите|отправляите|звоните|беспокоите)(?: пожалуиста)?",
    r"(?:пожалуиста )?(?:отстаньте|отвяжитесь|оставьте меня в покое)(?: от меня)?(?: пожалуиста)?",
    r"(?:я )?хочу отписаться(?: от (?:вашеи |этои |)(?:рассылки|уведомлении))?",
)
REQUESTS = re.compile(
    "|".join(
        f"(?:{pattern})"
        for patterns in (
            *(ENGLISH, GERMAN, FRENCH, SPANISH, PORTUGUESE, ITALIAN, DUTCH, MALAY, POLISH, RUSSIAN),
        )
        for pattern in patterns
    )
)
LONGEST = 160  # of one sentence


def is_request(sentence: str) -> bool:
    """Return whether a normalized sentence, as a whole, asks for no more messages."""
    return len(sentence) <= LONGEST and REQUESTS.fullmatch(sentence) is not None
