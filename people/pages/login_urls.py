"""Addresses of django-allauth, under the names that it knows: logging in, and a person's ways to log in."""

from allauth.account import views as account
from allauth.mfa.base import views as mfa
from allauth.mfa.recovery_codes import views as codes
from allauth.mfa.totp import views as totp
from allauth.mfa.webauthn import views as webauthn
from allauth.socialaccount import views as social
from django.contrib.auth.views import LogoutView
from django.urls import include, path, re_path
from django.views.generic import RedirectView

from accounts.login import Login

urlpatterns = [
    path("login/", Login.as_view(), name="account_login"),
    path("logout/", LogoutView.as_view(), name="account_logout"),
    path("login/new/", RedirectView.as_view(pattern_name="login"), name="account_signup"),
    path("login/deactivated/", account.account_inactive, name="account_inactive"),
    # Below /login/, so that the cookie of a known browser comes along (accounts/login.py).
    path("login/code/", mfa.authenticate, name="mfa_authenticate"),
    path("login/passkey/", webauthn.login_webauthn, name="mfa_login_webauthn"),
    path("login/forgotten/", account.password_reset, name="account_reset_password"),
    path("login/forgotten/sent/", account.password_reset_done, name="account_reset_password_done"),
    path(
        "login/forgotten/done/",
        account.password_reset_from_key_done,
        name="account_reset_password_from_key_done",
    ),
    re_path(
        r"^login/password/(?P<uidb36>[0-9A-Za-z]+)-(?P<key>.+)/$",
        account.password_reset_from_key,
        name="account_reset_password_from_key",
    ),
    path("login/canceled/", social.login_cancelled, name="socialaccount_login_cancelled"),
    path("login/failed/", social.login_error, name="socialaccount_login_error"),
    path("login/unknown/", RedirectView.as_view(pattern_name="login"), name="socialaccount_signup"),
    path("login/known/", RedirectView.as_view(pattern_name="people:me"), name="socialaccount_connections"),
    path("login/with/", include("allauth.socialaccount.providers.openid_connect.urls")),
    path("me/confirm/", account.reauthenticate, name="account_reauthenticate"),
    # Names that django-allauth asks for; a new e-mail is confirmed by people/emails.py.
    path("me/email/", RedirectView.as_view(pattern_name="people:email"), name="account_email"),
    path("me/password/", account.password_change, name="account_change_password"),
    path("me/password/set/", account.password_set, name="account_set_password"),
    path("me/second-factor/", mfa.index, name="mfa_index"),
    path("me/second-factor/confirm/", mfa.reauthenticate, name="mfa_reauthenticate"),
    path("me/second-factor/app/", totp.activate_totp, name="mfa_activate_totp"),
    path("me/second-factor/app/remove/", totp.deactivate_totp, name="mfa_deactivate_totp"),
    path("me/second-factor/codes/", codes.view_recovery_codes, name="mfa_view_recovery_codes"),
    path("me/second-factor/codes/new/", codes.generate_recovery_codes, name="mfa_generate_recovery_codes"),
    path(
        "me/second-factor/codes/download/",
        codes.download_recovery_codes,
        name="mfa_download_recovery_codes",
    ),
    path("me/passkeys/", webauthn.list_webauthn, name="mfa_list_webauthn"),
    path("me/passkeys/add/", webauthn.add_webauthn, name="mfa_add_webauthn"),
    path("me/passkeys/confirm/", webauthn.reauthenticate_webauthn, name="mfa_reauthenticate_webauthn"),
    path("me/passkeys/<int:pk>/remove/", webauthn.remove_webauthn, name="mfa_remove_webauthn"),
    path("me/passkeys/<int:pk>/rename/", webauthn.edit_webauthn, name="mfa_edit_webauthn"),
]
