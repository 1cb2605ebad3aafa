"""The working hours of an account, by the API."""

import pytest

from tests.api.program import Program
from tests.factories import AccountFactory


@pytest.mark.django_db
def test_the_api_sets_the_hours(program: Program) -> None:
    account = AccountFactory.create(owner=program.person)
    path = f"/accounts/{account.pk}/working-hours"
    answer = program.ask("PUT", path, {"start_hour": 8, "end_hour": 12, "days": [0, 4]})
    assert answer.json()["working_hours"] == {"start_hour": 8, "end_hour": 12, "days": [0, 4]}
    assert program.ask("PUT", path, {"start_hour": 12, "end_hour": 8}).status_code == 422
    assert program.ask("PUT", path, {}).json()["working_hours"]["start_hour"] is None
