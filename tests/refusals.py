"""Changes that the database itself must refuse, even if the code above it lets them through.

A refusal is a sentence, the constraint that should say no, and the attempt. Attempts are bare UPDATE statements,
so that neither a form nor a model is in the way.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest
from _pytest.mark import ParameterSet
from django.apps import apps
from django.db import IntegrityError, connection, models, transaction

from tests.factories import FACTORY_OF, Factory

Attempt = Callable[[], object]
COUNTING = (models.PositiveIntegerField, models.PositiveSmallIntegerField, models.PositiveBigIntegerField)


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """`prepare` makes what must be there and returns the attempt."""

    sentence: str
    constraint: str
    prepare: Callable[[], Attempt]

    def check(self) -> None:
        attempt = self.prepare()
        with pytest.raises(IntegrityError) as refused:
            _commit(attempt)
        reason = refused.value.__cause__
        assert isinstance(reason, psycopg.errors.IntegrityError)
        assert reason.diag.constraint_name == self.constraint


def changed(
    sentence: str,
    constraint: str,
    factory: type[Factory[Any]],
    given: Mapping[str, Any] | None = None,
    /,
    **columns: Any,
) -> Refusal:
    """A row, made with what is `given`, that was fine until these columns were written."""

    def prepare() -> Attempt:
        row = factory.create(**(given or {}))
        return lambda: _bare(row).update(**columns)

    return Refusal(sentence=sentence, constraint=constraint, prepare=prepare)


def doubled(
    sentence: str, constraint: str, factory: type[Factory[Any]], *columns: str, **given: Any
) -> Refusal:
    """A second row that gets these columns of the first one."""

    def prepare() -> Attempt:
        first, second = factory.create(**given), factory.create(**given)
        return lambda: _bare(second).update(**{column: getattr(first, column) for column in columns})

    return Refusal(sentence=sentence, constraint=constraint, prepare=prepare)


def as_parameters(refusals: Iterable[Refusal]) -> list[ParameterSet]:
    return [pytest.param(refusal, id=refusal.sentence) for refusal in refusals]


def declared(app: str) -> set[str]:
    """The names of all constraints that the models of an app declare."""
    return {
        name
        for model in apps.get_app_config(app).get_models()
        for name in (
            *(constraint.name for constraint in model._meta.constraints),
            *(
                f"{model._meta.db_table}_{field.column}_key"
                for field in model._meta.local_fields
                if field.unique and not field.primary_key
            ),
        )
    }


def numbers_from_zero(app: str) -> list[ParameterSet]:
    """The columns of an app that hold a count, a size or a place in an order."""
    return [
        pytest.param(model, field.name, id=f"{model.__name__}.{field.name}")
        for model in apps.get_app_config(app).get_models()
        for field in model._meta.local_fields
        if isinstance(field, COUNTING)
    ]


def check_below_zero(model: type[models.Model], column: str) -> None:
    """Check that the database refuses counters below zero."""
    row = FACTORY_OF[model].create()
    with pytest.raises(IntegrityError), transaction.atomic():
        _bare(row).update(**{column: -1})


def _commit(attempt: Attempt) -> None:
    """Make the attempt, and ask the constraints that wait for the commit, too."""
    with transaction.atomic():
        attempt()
        connection.check_constraints()


def _bare(row: models.Model) -> models.QuerySet[Any]:
    return type(row)._default_manager.filter(pk=row.pk)
