"""Changes the e-mail of a person, once a link that was sent to the new address is opened."""

from allauth.account.models import EmailAddress
from django.conf import settings
from django.core import signing
from django.db import transaction
from django.template.loader import render_to_string
from django.urls import reverse

from accounts.models import User
from people import mails

SALT = "people.emails"
SECONDS = 24 * 3600


class EmailError(ValueError):
    """The e-mail cannot be changed. The text says why."""


def ask(person: User, new: str) -> None:
    """Send a link to the new address. The answer is the same where somebody else has it: then no link is sent."""
    if not mails.is_ready():
        raise EmailError("Mail is not set up here, so a new address cannot be confirmed. Ask a staff member.")
    if _is_taken(person, new):
        return
    token = signing.dumps([person.pk, person.email, new], salt=SALT)
    url = f"{settings.PUBLIC_URL}{reverse('people:confirm_email', args=[token])}"
    text = render_to_string("people/mails/email.txt", {"person": person, "url": url})
    mails.send_later(to=new, subject="Confirm your e-mail for Paceline", text=text)


def read(token: str) -> tuple[User, str] | None:
    """Return the person and the new address behind a link; None for one that is forged, too old or used."""
    try:
        pk, old, new = signing.loads(token, salt=SALT, max_age=SECONDS)
    except (signing.BadSignature, ValueError, TypeError):
        return None
    person = User.objects.filter(pk=pk, email=old, is_active=True).first()
    return (person, new) if person is not None and not _is_taken(person, new) else None


@transaction.atomic
def confirm(token: str) -> User:
    """Give the person the new address, and tell the old one; raise EmailError."""
    found = read(token)
    if found is None:
        raise EmailError("This link was used, or is too old. Enter the address again on your page.")
    person, new = found
    old = User.objects.select_for_update(no_key=True).get(pk=person.pk).email
    if old != person.email:
        raise EmailError("The address was changed meanwhile. Enter it again on your page.")
    person.email = new
    person.save(update_fields=["email"])
    EmailAddress.objects.filter(user=person).delete()
    EmailAddress.objects.create(user=person, email=new, verified=True, primary=True)
    if old and mails.is_ready():
        text = render_to_string("people/mails/email_changed.txt", {"person": person, "new": new})
        mails.send_later(to=old, subject="Your e-mail in Paceline was changed", text=text)
    return person


def _is_taken(person: User, email: str) -> bool:
    others = User.objects.exclude(pk=person.pk).filter(email__iexact=email)
    return others.exists() or EmailAddress.objects.exclude(user=person).filter(email__iexact=email).exists()
