"""Words all errors of forms in plain English: of ours, of the administration's and of those of libraries.

A form that can say it better gives its field a sentence of its own. Fields copy these sentences when they are made, so
they are set before any form is read.
"""

from typing import Any, Final

from django import forms
from django.core import validators

CHOOSE: Final = "Choose one from the list."
NOT_ON_THE_LIST: Final = "This is not on the list. Choose again."
A_FILE: Final = "Choose a file."

OF_FIELDS: Final[dict[Any, dict[str, str]]] = {
    forms.Field: {"required": "Fill in this field."},
    forms.IntegerField: {"invalid": "Write a whole number, such as 12."},
    forms.FloatField: {"invalid": "Write a number, such as 12 or 0.5."},
    forms.DateField: {"invalid": "Write a date, such as 2026-03-31."},
    forms.TimeField: {"invalid": "Write a time, such as 14:30."},
    forms.DateTimeField: {"invalid": "Write a date and a time, such as 2026-03-31 14:30."},
    forms.URLField: {"invalid": "Write a whole address, such as https://name.example."},
    forms.JSONField: {"invalid": "This is not JSON. Check the brackets, commas and quotation marks."},
    forms.BooleanField: {"required": "Tick this box."},
    forms.ChoiceField: {"required": CHOOSE, "invalid_choice": NOT_ON_THE_LIST},
    forms.MultipleChoiceField: {"required": "Choose at least one.", "invalid_choice": NOT_ON_THE_LIST},
    forms.ModelChoiceField: {"required": CHOOSE, "invalid_choice": NOT_ON_THE_LIST},
    forms.ModelMultipleChoiceField: {
        "required": "Choose at least one.",
        "invalid_choice": NOT_ON_THE_LIST,
        "invalid_list": NOT_ON_THE_LIST,
        "invalid_pk_value": NOT_ON_THE_LIST,
    },
    forms.FileField: {
        "required": A_FILE,
        "invalid": A_FILE,
        "missing": A_FILE,
        "empty": "This file is empty. Choose another.",
        "max_length": "The file's name has %(length)d characters. Shorten it to %(max)d at most.",
    },
}
OF_VALIDATORS: Final[dict[Any, str]] = {
    validators.MaxLengthValidator: "This has %(show_value)d characters. Shorten it to %(limit_value)d at most.",
    validators.MinLengthValidator: "This has %(show_value)d characters. Write at least %(limit_value)d.",
    validators.MaxValueValidator: "Write %(limit_value)s or less.",
    validators.MinValueValidator: "Write %(limit_value)s or more.",
    validators.StepValueValidator: "Write a multiple of %(limit_value)s.",
    validators.EmailValidator: "Write an e-mail address, such as name@example.com.",
    validators.URLValidator: "Write a whole address, such as https://name.example.",
    validators.ProhibitNullCharactersValidator: "This has a character that cannot be saved. Type it again.",
}


def set_words() -> None:
    """Put our sentences in the place of Django's."""
    for field, messages in OF_FIELDS.items():
        field.default_error_messages = {**vars(field).get("default_error_messages", {}), **messages}
    for validator, message in OF_VALIDATORS.items():
        validator.message = message
