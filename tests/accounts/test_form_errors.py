"""Forms say what to do in plain English; none of Django's own sentences is left, wherever the form comes from."""

from typing import Any

import pytest
from django import forms
from django.contrib.auth.models import Group
from django.core.files.uploadedfile import SimpleUploadedFile
from django.template.loader import render_to_string
from django.test import Client
from django.urls import reverse

from accounts.models import User

DJANGOS = ("ensure", "valid", "required", "submitted", "list of values")


@pytest.mark.parametrize(
    ("field", "given", "said"),
    [
        (forms.CharField(), "", "Fill in this field."),
        (forms.CharField(max_length=3), "four", "This has 4 characters. Shorten it to 3 at most."),
        (forms.CharField(min_length=3), "no", "This has 2 characters. Write at least 3."),
        (forms.CharField(), "\0", "This has a character that cannot be saved. Type it again."),
        (forms.IntegerField(), "many", "Write a whole number, such as 12."),
        (forms.IntegerField(max_value=9), "10", "Write 9 or less."),
        (forms.IntegerField(min_value=1), "0", "Write 1 or more."),
        (forms.IntegerField(step_size=5), "3", "Write a multiple of 5."),
        (forms.FloatField(), "x", "Write a number, such as 12 or 0.5."),
        (forms.DateField(), "x", "Write a date, such as 2026-03-31."),
        (forms.TimeField(), "x", "Write a time, such as 14:30."),
        (forms.DateTimeField(), "x", "Write a date and a time, such as 2026-03-31 14:30."),
        (forms.EmailField(), "x", "Write an e-mail address, such as name@example.com."),
        (
            forms.URLField(assume_scheme="https"),
            "a b",
            "Write a whole address, such as https://name.example.",
        ),
        (forms.JSONField(), "{", "This is not JSON. Check the brackets, commas and quotation marks."),
        (forms.BooleanField(), "", "Tick this box."),
        (forms.ChoiceField(choices=[("a", "A")]), "", "Choose one from the list."),
        (forms.ChoiceField(choices=[("a", "A")]), "b", "This is not on the list. Choose again."),
        (forms.MultipleChoiceField(choices=[("a", "A")]), [], "Choose at least one."),
        (forms.MultipleChoiceField(choices=[("a", "A")]), ["b"], "This is not on the list. Choose again."),
        (forms.ModelChoiceField(Group.objects.none()), "1", "This is not on the list. Choose again."),
        (forms.ModelMultipleChoiceField(Group.objects.none()), "1", "This is not on the list. Choose again."),
        (
            forms.ModelMultipleChoiceField(Group.objects.none()),
            ["x"],
            "This is not on the list. Choose again.",
        ),
        (forms.FileField(), None, "Choose a file."),
        (forms.FileField(), SimpleUploadedFile("a.csv", b""), "This file is empty. Choose another."),
    ],
)
@pytest.mark.django_db
def test_each_kind_of_field_says_what_to_do(field: forms.Field, given: Any, said: str) -> None:
    with pytest.raises(forms.ValidationError) as refused:
        field.clean(given)
    assert refused.value.messages == [said]
    assert not any(word in said.lower() for word in DJANGOS)


def test_a_form_that_says_it_better_keeps_its_own_words() -> None:
    own = forms.CharField(error_messages={"required": "Write a name."})
    assert own.error_messages["required"] == "Write a name."


@pytest.mark.django_db
def test_the_administration_says_it_in_the_same_words(admin_client: Client) -> None:
    page = admin_client.post(reverse("admin:accounts_user_add"), {"username": "x" * 151})
    assert "This has 151 characters. Shorten it to 150 at most." in page.content.decode()
    assert "Ensure this value" not in page.content.decode()


@pytest.mark.parametrize("name", ["account/messages/logged_in.txt", "account/messages/logged_out.txt"])
def test_to_log_in_is_called_so_everywhere(name: str) -> None:
    said = render_to_string(name, {"user": User(username="ann")})
    assert "logged" in said
    assert "signed" not in said
