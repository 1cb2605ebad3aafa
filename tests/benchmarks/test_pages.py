"""The benchmark of the pages finds them by itself; how long they take is measured there."""

import pytest
from django.test import Client

from accounts.models import User
from benchmarks import pages


def test_every_section_and_every_admin_list_is_among_the_pages() -> None:
    found = dict(pages.addresses())
    assert {"dashboard", "activity:list", "activity:attempts", "notifications:list", "runs:page"} <= set(
        found
    )
    assert found["runs:page"] == "/runs/1/"
    assert "admin:delivery_runtarget_changelist" in dict(pages.admin_lists())


@pytest.mark.django_db
def test_a_page_is_measured_and_what_is_none_is_left_out(client: Client, owner: User) -> None:
    client.force_login(owner)
    asked = pages.ask(client, "activity:list", "/activity/", times=2)
    assert asked is not None
    assert asked.queries == 6
    assert pages.ask(client, "nothing", "/runs/1/", times=2) is None
