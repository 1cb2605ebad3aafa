"""Takes the tables of django-allauth out of the administration: secrets and sessions are not for looking at."""

from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.socialaccount.models import SocialAccount, SocialApp, SocialToken
from allauth.usersessions.models import UserSession
from django.contrib import admin

for model in (EmailAddress, Authenticator, SocialAccount, SocialApp, SocialToken, UserSession):
    admin.site.unregister(model)
