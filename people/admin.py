"""Takes the tables of django-allauth out of the administration: secrets and sessions are not for looking at."""

from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.usersessions.models import UserSession
from django.contrib import admin

for model in (EmailAddress, Authenticator, UserSession):
    admin.site.unregister(model)
