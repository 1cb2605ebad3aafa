"""Every factory makes an object that the database accepts, in each of its states."""

import pytest
from django.apps import apps
from django.db.models import Model
from factory.declarations import Trait

from tests import factories
from tests.factories import FACTORY_OF, Factory

APPS = ("accounts", "reminders", "queues", "delivery", "activity", "audit", "api", "notices")

FACTORIES: list[type[Factory[Model]]] = [
    thing
    for thing in vars(factories).values()
    if isinstance(thing, type) and issubclass(thing, Factory) and not thing._meta.abstract
]
TRAITS = [
    pytest.param(factory, trait, id=f"{factory.__name__}-{trait}")
    for factory in FACTORIES
    for trait, declared in factory._meta.parameters.items()
    if isinstance(declared, Trait)
]


def test_each_model_has_a_factory() -> None:
    models = {model for label in APPS for model in apps.get_app_config(label).get_models()}
    assert models == FACTORY_OF.keys()


@pytest.mark.django_db
@pytest.mark.parametrize("factory", FACTORIES, ids=lambda factory: factory.__name__)
def test_a_factory_makes_two_that_do_not_collide(factory: type[Factory[Model]]) -> None:
    first, second = factory.create_batch(2)
    assert first.pk != second.pk


@pytest.mark.django_db
@pytest.mark.parametrize(("factory", "trait"), TRAITS)
def test_a_factory_makes_each_of_its_states(factory: type[Factory[Model]], trait: str) -> None:
    assert factory.create(**{trait: True}).pk
