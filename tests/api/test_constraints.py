"""Keys and answers that the database itself refuses."""

import pytest
from django.db.models import Model

from tests.factories import ApiKeyFactory, StoredAnswerFactory
from tests.refusals import (
    Refusal,
    as_parameters,
    changed,
    check_below_zero,
    declared,
    doubled,
    numbers_from_zero,
)

pytestmark = pytest.mark.django_db

REFUSALS = [
    changed("a key with an unknown scope", "api_key_scopes_known", ApiKeyFactory, scopes=["read", "all"]),
    changed("a key without a scope", "api_key_scopes_known", ApiKeyFactory, scopes=[]),
    changed("a key that is stored as it is", "api_key_is_hashed", ApiKeyFactory, digest="paceline_secret"),
    doubled("two keys with one prefix", "api_apikey_prefix_key", ApiKeyFactory, "prefix"),
    doubled("two answers of one key to one name", "answer_once_per_key", StoredAnswerFactory, "key", "name"),
]


@pytest.mark.parametrize("refusal", as_parameters(REFUSALS))
def test_the_database_refuses(refusal: Refusal) -> None:
    refusal.check()


def test_every_constraint_is_tried() -> None:
    assert declared("api") - {refusal.constraint for refusal in REFUSALS} == set()


@pytest.mark.parametrize(("model", "column"), numbers_from_zero("api"))
def test_the_database_refuses_a_number_below_zero(model: type[Model], column: str) -> None:
    check_below_zero(model, column)


def test_two_keys_may_use_one_name_for_their_requests() -> None:
    first = StoredAnswerFactory.create()
    assert StoredAnswerFactory.create(name=first.name).pk != first.pk
