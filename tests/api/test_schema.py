"""The whole API against its own description: no error of ours, and no answer that is described otherwise."""

import os
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from django.core.signals import request_finished, request_started
from django.core.wsgi import get_wsgi_application
from django.db import close_old_connections
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.core.parameters import ParameterLocation
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_schema_conformance,
    status_code_conformance,
)

from accounts.models import User
from tests.api.program import ROOT, Program
from tests.api.things import Things

SCHEMA = schemathesis.openapi.from_wsgi(f"{ROOT}/openapi.json", get_wsgi_application())
OPERATIONS: list[Any] = [found.ok() for found in SCHEMA.get_all_operations()]  # type: ignore[union-attr]  # else it fails
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    negative_data_rejection,
]
# Examples per operation. The long test reaches every route in a quarter of an hour; SCHEMA_EXAMPLES asks for more.
BOUNDED, LONG = 12, int(os.environ.get("SCHEMA_EXAMPLES", "60"))
HEALTH = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.filter_too_much]


@pytest.fixture(autouse=True)
def _one_connection() -> Iterator[None]:
    """The transaction of the test goes on over many requests, as with Django's own client."""
    signals = (request_started, request_finished)
    for signal in signals:
        signal.disconnect(close_old_connections)
    yield
    for signal in signals:
        signal.connect(close_old_connections)


def ask(operation: Any, owner: User, examples: int) -> None:
    """Ask one operation with generated values, right and wrong ones; every second time about rows that are there."""
    things, program = Things(owner), Program(owner)
    real = things.path_of(operation.path)

    @settings(
        max_examples=examples,
        deadline=None,
        suppress_health_check=HEALTH,
        phases=[Phase.explicit, Phase.generate],
        derandomize=examples == BOUNDED,
        database=None,
    )
    @given(data=st.data())
    def asked(data: Any) -> None:
        mode = data.draw(st.sampled_from(list(schemathesis.GenerationMode)))
        case = data.draw(operation.as_strategy(generation_mode=mode))
        if real and data.draw(st.booleans()):
            case.path_parameters = {**(case.path_parameters or {}), **real}
        response = case.call(headers={"Authorization": f"Bearer {program.secret}"})
        judges_values = not real and not spoils_the_key(case)
        case.validate_response(response, checks=CHECKS if judges_values else CHECKS[:-1])

    asked()


def spoils_the_key(case: Any) -> bool:
    """Return whether wrong headers were generated: the test sends the right key all the same."""
    headers = case.meta.components.get(ParameterLocation.HEADER)
    return headers is not None and headers.mode.is_negative


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.label)
def test_every_operation_answers_as_it_is_described(operation: Any, owner: User, settings: Any) -> None:
    settings.API_PER_MINUTE = 100_000
    ask(operation, owner, BOUNDED)


@pytest.mark.soak
@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.label)
def test_every_operation_answers_so_for_long(operation: Any, owner: User, settings: Any) -> None:
    settings.API_PER_MINUTE = 100_000
    ask(operation, owner, LONG)


def test_the_description_is_open_api_3_1_and_names_each_operation_once() -> None:
    raw = SCHEMA.raw_schema
    ids = [operation["operationId"] for path in raw["paths"].values() for operation in path.values()]
    assert raw["openapi"].startswith("3.1")
    assert len(ids) == len(set(ids)) == len(OPERATIONS)
    assert all(operation.get("description") for path in raw["paths"].values() for operation in path.values())
