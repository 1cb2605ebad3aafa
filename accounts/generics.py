"""Django's admin classes with the type arguments that the stubs want and that the classes lack at run time."""

from typing import TYPE_CHECKING

from django.contrib import admin
from django.contrib.auth import admin as auth_admin
from django.core import paginator
from django.forms import models

if TYPE_CHECKING:
    ModelAdmin = admin.ModelAdmin
    TabularInline = admin.TabularInline
    UserAdmin = auth_admin.UserAdmin
    ModelForm = models.ModelForm
    Paginator = paginator.Paginator
    Page = paginator.Page
else:

    class _Subscriptable:
        def __class_getitem__(cls, _: object) -> type:
            return cls

    class ModelAdmin(_Subscriptable, admin.ModelAdmin):
        pass

    class TabularInline(_Subscriptable, admin.TabularInline):
        pass

    class UserAdmin(_Subscriptable, auth_admin.UserAdmin):
        pass

    class ModelForm(_Subscriptable, models.ModelForm):
        pass

    class Paginator(_Subscriptable, paginator.Paginator):
        pass

    class Page(_Subscriptable, paginator.Page):
        pass
