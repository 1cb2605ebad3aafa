"""Our ways in django-allauth: links from PUBLIC_URL, mails by a worker, no sign-up of strangers, encrypted secrets."""

from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from allauth.account.models import EmailAddress
from allauth.core import context
from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme

from accounts.encryption import decrypt, encrypt
from accounts.login import remember
from config.web.proxies import login_address
from people import mails


class AccountAdapter(DefaultAccountAdapter):  # type: ignore[misc]  # allauth has no types
    def is_open_for_signup(self, request: HttpRequest) -> bool:  # noqa: ARG002 - allauth's signature
        """Refuse: people are invited, or added by staff."""
        return False

    def post_login(self, request: HttpRequest, user: Any, **kwargs: Any) -> HttpResponse:
        """Remember the browser after all steps of a log-in, so that the limits of strangers do not hold it up."""
        response: HttpResponse = super().post_login(request, user, **kwargs)
        remember(response, user)
        return response

    def is_safe_url(self, url: str) -> bool:
        """Allow pages of this host alone as the place to go to after a log-in."""
        return url_has_allowed_host_and_scheme(
            url, allowed_hosts={context.request.get_host()}, require_https=context.request.is_secure()
        )

    def get_client_ip(self, request: HttpRequest) -> str:
        return login_address(request)

    def format_email_subject(self, subject: str) -> str:
        return subject

    def get_password_change_redirect_url(self, request: HttpRequest) -> str:  # noqa: ARG002
        return reverse("people:me")

    def get_reset_password_from_key_url(self, key: str) -> str:
        return f"{settings.PUBLIC_URL}{reset_path(key)}"

    def send_mail(self, template_prefix: str, email: str, context: dict[str, Any]) -> None:
        """Let a worker send the mail, so that the answer takes as long for an e-mail that nobody has."""
        if not mails.is_ready():
            return
        message = self.render_mail(template_prefix, email, context)
        mails.send_later(to=email, subject=message.subject, text=message.body)


def reset_path(key: str) -> str:
    """Return the path behind a link for a new password; `key` is the person's id and the token."""
    path = reverse("account_reset_password_from_key", kwargs={"uidb36": "UID", "key": "KEY"})
    return path.replace("UID-KEY", key)


class MfaAdapter(DefaultMFAAdapter):  # type: ignore[misc]  # allauth has no types
    def encrypt(self, text: str) -> str:
        return encrypt({"secret": text})

    def decrypt(self, encrypted_text: str) -> str:
        return decrypt(encrypted_text)["secret"]

    def get_totp_issuer(self) -> str:
        return "Paceline"

    def _get_site_name(self) -> str:
        return "Paceline"


class OidcAdapter(DefaultSocialAccountAdapter):  # type: ignore[misc]  # allauth has no types
    """Logs in people who are here already, and makes no account.

    The first time, the provider must vouch for the e-mail, and the same e-mail must have been confirmed here: by a link
    in a mail, not by what somebody typed. After that, the provider's own id of the person counts.
    """

    def is_open_for_signup(self, request: HttpRequest, sociallogin: Any) -> bool:  # noqa: ARG002
        return False

    def pre_social_login(self, request: HttpRequest, sociallogin: Any) -> None:
        if sociallogin.state.get("process") != "login":
            # A link of another site could connect somebody else's identity with the account of whoever follows it.
            raise PermissionDenied("Log out, then log in with this provider.")
        if sociallogin.is_existing:
            return
        vouched = [each.email for each in sociallogin.email_addresses if each.verified]
        known = EmailAddress.objects.filter(verified=True, user__is_active=True).select_related("user")
        found = {each.user for email in vouched for each in known.filter(email__iexact=email)}
        if len(found) == 1:
            sociallogin.connect(request, found.pop())
